/** Runs a benchmark, and stops all that it has started, also when it breaks or is interrupted. */

/** What a benchmark has started; the last is stopped first. */
export const stops: (() => unknown)[] = [];

/** Runs a benchmark and ends the process: with 1 if something broke, and with 0 even if a bar was missed. */
export async function run(bench: () => Promise<void>): Promise<never> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end(1));
  try {
    await bench();
  } catch (error) {
    // What is interrupted breaks, too, but that is no news.
    if (!ending) console.error('The benchmark broke.', error);
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
