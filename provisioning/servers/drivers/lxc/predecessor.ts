/**
 * The machine that a rebuild replaces. It stays, off and apart from the network, until the new one exists. A failed
 * rebuild gives it back its addresses and its power. A machine has two names, and the new one takes the other. Renaming is
 * no way, because cloud-init takes a renamed machine for a new one.
 */
import type { Power } from '../driver.ts';
import type { LxcEngine } from './engine.ts';
import { type Instance, isParked, MARK, powerOf } from './instance.ts';
import { NIC, withoutIpv6 } from './network.ts';

/** The state of a predecessor before its rebuild. */
interface Former {
  /** The change that replaces it. Older versions did not write it. */
  change?: string;
  power: Power;
  nic: Record<string, string>;
}

const formerOf = ({ config }: Instance) => JSON.parse(config![MARK.parked]!) as Former;

/**
 * The machine that a failed rebuild was to replace. A stuck machine of an earlier rebuild is older.
 * @param change the rebuild; default: that of the unfinished instance
 */
export function predecessorIn(instances: readonly Instance[], change?: string): Instance | undefined {
  const failed = change ?? instances.find((one) => !isParked(one))?.config?.[MARK.change];
  const parked = instances.filter(isParked).filter((one) => !failed || (formerOf(one).change ?? failed) === failed);
  return parked.find(({ config }) => !config?.[MARK.stuck]) ?? parked[0];
}

/** Turns a machine off for a change, and frees its addresses. */
export async function park(engine: LxcEngine, old: Instance, change: string, signal: AbortSignal): Promise<void> {
  const { name, devices } = old;
  const nic = devices![NIC]!;
  const former: Former = { change, power: powerOf(old), nic };
  await engine.mark(name, { [MARK.parked]: JSON.stringify(former) }, signal);
  if (former.power === 'on') await engine.stop(name, false, signal);
  await engine.mark(name, {}, signal, { [NIC]: without(nic) });
}

/** The same network card without addresses. With no card at all, cloud-init would take the machine for a new one. */
const without = (nic: Record<string, string>): Record<string, string> => ({
  ...withoutIpv6(nic),
  // The engine refuses two cards with one MAC.
  hwaddr: `06${nic.hwaddr!.slice(2)}`,
  'ipv4.address': 'none',
  'security.ipv4_filtering': 'true',
  'security.ipv6_filtering': 'true',
});

/** Undoes `park`, also a part of it. */
export async function restore(engine: LxcEngine, old: Instance, signal: AbortSignal): Promise<void> {
  const { name, status } = old;
  const { power, nic } = formerOf(old);
  await engine.mark(name, { [MARK.parked]: '' }, signal, { [NIC]: nic });
  if (power === 'on' && status === 'Stopped') await engine.start(name, signal);
}
