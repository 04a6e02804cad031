/** The first half of a restart. */
import type { LxcEngine } from './engine.ts';
import { type Instance, MARK } from './instance.ts';

/**
 * Stops an instance once for each change. It stores the process of the old system with the instance. In a repeated call,
 * another process shows that the restart is done.
 * @returns whether the caller must start it
 */
export async function stopOnce(
  engine: LxcEngine,
  { name, config = {} }: Instance,
  { change, graceful }: { change: string; graceful: boolean },
  signal: AbortSignal,
): Promise<boolean> {
  const boot = await engine.bootOf(name, signal);
  const begun = config[MARK.change] === change;
  if (begun && boot > 0 && String(boot) !== config[MARK.before]) return false;
  if (!begun) await engine.mark(name, { [MARK.change]: change, [MARK.before]: String(boot) }, signal);
  if (boot > 0) await engine.stop(name, graceful, signal);
  return true;
}
