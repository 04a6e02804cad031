/** The removal of an instance, which waits for the work of others on it. */
import { DriverError } from '../driver.ts';
import { EngineError, type LxcClient, pause } from './client.ts';
import { type Instance, MARK } from './instance.ts';
import { NIC } from './network.ts';

/** Milliseconds that the driver waits for the engine to let go of an instance. */
const BUSY_MS_MAX = 30_000;

/**
 * Removes an instance. A killed engine can leave one that cannot be removed. The driver then detaches its network, which
 * frees its addresses, and marks it for the operator.
 * @param stop cuts its power
 * @throws DriverError stuck; failed if the engine still works on it
 */
export async function removeInstance(
  client: LxcClient,
  { name, status }: Instance,
  stop: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const path = `/1.0/instances/${name}`;
  const stopped = () => stop().catch(() => signal.throwIfAborted());
  if (status !== 'Stopped') await stopped();
  try {
    await deleted(client, path, stopped, signal);
  } catch (error) {
    if (!(error instanceof EngineError) || error.code === 'unreachable') throw error;
    if (error.status === 404) return;
    if (isBusy(error)) throw error;
    const left = await client.get<Instance>(path, signal).catch(() => undefined);
    if (!left) throw error; // It is gone or unknown, and the next call decides.
    const { [NIC]: _, ...devices } = left.devices ?? {};
    const config = { ...left.config, [MARK.stuck]: '1' };
    await client.call('PUT', path, { ...left, devices, config }, signal).catch(() => signal.throwIfAborted());
    throw new DriverError('stuck', error.message);
  }
}

/** Whether the engine refused a call because it works on the instance. */
export const isBusy = (error: Error): boolean => /is busy/.test(error.message);

/** After a failed start the engine is busy for some seconds. A start of another worker may end meanwhile. */
async function deleted(
  client: LxcClient,
  path: string,
  stopped: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (const end = Date.now() + BUSY_MS_MAX; ; await pause(500, signal)) {
    try {
      await client.call('DELETE', path, undefined, signal);
      return;
    } catch (error) {
      if (!(error instanceof EngineError) || Date.now() > end) throw error;
      if (/is running/.test(error.message)) await stopped();
      else if (!isBusy(error)) throw error;
    }
  }
}
