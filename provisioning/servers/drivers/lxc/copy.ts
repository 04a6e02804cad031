/**
 * The copy that an engine makes to move an instance. It has all marks of the instance, and another name. When it is whole, the
 * engine deletes the instance and renames the copy. Until then the instance counts.
 */
import { DriverError, type MachineKey } from '../driver.ts';
import { type Instance, isCopy, isOf } from './instance.ts';

/**
 * Refuses to move an instance that has a copy, which an engine left that died. If it died while it deleted the instance, only
 * the copy is whole. So the operator decides.
 * @throws DriverError stuck
 */
export function requireNoCopy(instances: readonly Instance[], key: MachineKey, name: string): void {
  const copy = instances.find((one) => isOf(one, key) && isCopy(one) && one.name !== name);
  if (!copy) return;
  const text = `An earlier move of ${name} left ${copy.name} on ${copy.location}. Delete the copy if ${name} is whole.`;
  throw new DriverError('stuck', text);
}
