/** Paces work that many changes ask for. */

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
