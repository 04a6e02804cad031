/** Runs a benchmark and stops everything it started, even after a failure or an interrupt. */

/** Stops the processes and servers of a benchmark, the last one first. */
export const stops: (() => unknown)[] = [];

/** Runs a benchmark and ends the process. The exit code is 1 after a failure, and 0 even if a bar was missed. */
export async function run(bench: () => Promise<void>): Promise<never> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end(1));
  try {
    await bench();
  } catch (error) {
    // An interrupted benchmark fails, too; its error tells nothing new.
    if (!ending) console.error('The benchmark failed.', error);
    return end(1);
  }
  return end(0);
}

let ending: Promise<never> | undefined;
const end = (exitCode: number): Promise<never> => (ending ??= stopAll(exitCode));

async function stopAll(exitCode: number): Promise<never> {
  for (const stop of stops.splice(0).reverse()) await stop();
  process.exit(exitCode);
}
