/**
 * Moves of instances, and the copy that an engine makes for one. The copy has all marks of the instance, and another name.
 * When it is whole, the engine deletes the instance and renames the copy. Until then the instance counts.
 */
import { DriverError, type MachineKey, type Observation } from '../driver.ts';
import { EngineError } from './client.ts';
import type { LxcEngine } from './engine.ts';
import { type Instance, isCopy, isOf, keyOf, MARK, machinesIn, observationOf } from './instance.ts';

/**
 * The reason why an instance with a copy cannot move. An engine that died has left the copy. If it died while it deleted the
 * instance, only the copy is whole. So the operator decides.
 */
function reasonOf(instances: readonly Instance[], key: MachineKey, name: string): string | undefined {
  const copy = instances.find((one) => isCopy(one) && one.name !== name && isOf(one, key));
  return (
    copy && `An earlier move of ${name} left ${copy.name} on ${copy.location}. Delete the copy if ${name} is whole.`
  );
}

/** Refuses to move an instance that has a copy. @throws DriverError stuck */
export function requireNoCopy(instances: readonly Instance[], key: MachineKey, name: string): void {
  const reason = reasonOf(instances, key, name);
  if (reason) throw new DriverError('stuck', reason);
}

/** The observations of all machines among instances. They tell which machines have a copy, before one is turned off to move. */
export function observationsOf(instances: readonly Instance[], serverName: string): Observation[] {
  const copies = instances.filter(isCopy);
  return machinesIn(instances).map((one) => {
    const key = keyOf(one)!;
    const stays = reasonOf(copies, key, one.name);
    return { ...observationOf(one, key, serverName), ...(stays && { stays }) };
  });
}

/**
 * Moves an instance that is off. A move can fail after its caller has stopped waiting. So the driver marks a move before it
 * begins. If a later call finds the mark and the instance where it was, it tells of the failure once.
 * @throws DriverError failed, also for a move that failed meanwhile; rejected if it is on; stuck
 */
export async function moveOnce(
  engine: LxcEngine,
  key: MachineKey,
  { name, status, config }: Instance,
  host: string,
  signal: AbortSignal,
): Promise<void> {
  if (status !== 'Stopped') throw new DriverError('rejected', `${name} is on.`);
  requireNoCopy(await engine.marked(key, signal), key, name);
  const forget = () => engine.mark(name, { [MARK.move]: '' }, signal);
  if (config?.[MARK.move] === host) {
    await forget();
    throw new DriverError('failed', `A move of ${name} to ${host} has failed. The log of the engine has the reason.`);
  }
  await engine.mark(name, { [MARK.move]: host }, signal);
  await engine.move(name, host, signal).catch(async (error) => {
    // The project may not use that host. Waiting would not help.
    const isRefused = error instanceof EngineError && error.status === 403;
    const failure = isRefused ? new DriverError('failed', error.message) : error;
    if (failure instanceof DriverError && failure.code !== 'unreachable') await forget();
    throw failure;
  });
  await forget();
}
