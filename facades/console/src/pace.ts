/** Paces work that many changes or keys ask for. */

/**
 * Returns a function that asks for the work. The first call runs it at once. Calls that come meanwhile run it once more,
 * `restMs` milliseconds after its end at the earliest.
 */
export function paced(work: () => Promise<void>, restMs: () => number): () => void {
  let [isBusy, isWanted] = [false, false];
  const run = async () => {
    isBusy = true;
    while (isWanted) {
      isWanted = false;
      await work().catch(() => {});
      await new Promise((resume) => setTimeout(resume, restMs()));
    }
    isBusy = false;
  };
  return () => {
    isWanted = true;
    if (!isBusy) void run();
  };
}

/** Returns a function that does a work once `ms` milliseconds pass without another call. Only the work of the last call runs. */
export function afterLast(ms: number): (work: () => void) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (work) => {
    clearTimeout(timer);
    timer = setTimeout(work, ms);
  };
}
