/** Ends what a test or a file has started. */
import { onTestFinished, TestRunner } from 'vitest';

/** The process has one list, although vitest loads this module twice. */
const shared = globalThis as { ends?: (() => unknown)[] };
shared.ends ??= [];
const { ends } = shared;

/**
 * Calls `end` when the current test has ended. Without one, during collection or in a `beforeAll`, it calls `end` when the
 * file has ended. Vitest ignores an `afterAll` that a test or a hook calls.
 */
export function atEnd(end: () => unknown): void {
  if (TestRunner.getCurrentTest()) onTestFinished(async () => void (await end()));
  else ends.push(end);
}

/** Ends everything that the file has started, the last first. @throws AggregateError after all, with their faults */
export async function endFile(): Promise<void> {
  const faults: unknown[] = [];
  for (const end of ends.splice(0).reverse())
    try {
      await end();
    } catch (fault) {
      faults.push(fault);
    }
  if (faults.length) throw new AggregateError(faults, 'The test file could not end everything that it had started.');
}
