/** The counters of instances, as the engine shows them with their state, and the speed of their network cards. */
import type { Reading } from '../driver.ts';
import { type Instance, isReady, keyOf, powerOf } from './instance.ts';
import { EGRESS, NIC, ratesOf } from './network.ts';

/** `GET /1.0/instances?recursion=2`. */
export interface StatedInstance extends Instance {
  /** Null: its member does not answer. Missing: it is too long for an answer. */
  state?: {
    /** Of its init, or of the emulator; 0 or less if it has none. */
    pid: number;
    cpu?: { usage: number };
    memory?: { usage: number };
    disk?: Record<string, { usage: number }> | null;
    /** Interfaces by the names that root in the machine chose. */
    network?: Record<string, Interface> | null;
  } | null;
}

interface Interface {
  /** The other end on the host, as the engine finds it. */
  host_name: string;
  counters: { bytes_sent: number; bytes_received: number; packets_sent: number };
}

const UNREAD = {
  ...{ isUnread: true, epoch: '', sentBytes: null, receivedBytes: null, sentPackets: null },
  ...{ cpuNs: null, memoryBytes: null, diskBytes: null, portMbps: null },
};

/** The reading of a finished machine that is on. */
export function readingOf(instance: StatedInstance): Reading[] {
  const { name, location, state, devices } = instance;
  if (powerOf(instance) === 'off' || !isReady(instance)) return [];
  if (state === undefined) return [{ ...keyOf(instance)!, ...UNREAD }];
  if (!state || state.pid <= 0) return [];
  const cards = cardsOf(instance);
  const sum = (counter: keyof Interface['counters']) =>
    cards.length ? cards.reduce((total, { counters }) => total + counters[counter], 0) : null;
  const rate = /^(\d+)Mbit$/.exec(devices?.[NIC]?.['limits.ingress'] ?? '')?.[1];
  return [
    {
      ...keyOf(instance)!,
      epoch: `${name} ${location} ${state.pid}`,
      sentBytes: sum('bytes_sent'),
      receivedBytes: sum('bytes_received'),
      sentPackets: sum('packets_sent'),
      // The host of a virtual machine does not know all of them, and the engine shows zeros.
      cpuNs: state.cpu?.usage || null,
      memoryBytes: state.memory?.usage || null,
      diskBytes: state.disk?.root?.usage || null,
      portMbps: rate ? Number(rate) : null,
      ...(cards.length > 1 && { isDisguised: true }),
    },
  ];
}

/**
 * The card that the engine gave to the machine. Root in the machine can rename it, change its MAC, and make others that pass
 * for it. The greatest one may be made up, and then hides the growth of the real one. So all of them count.
 */
function cardsOf({ config, state }: StatedInstance): Interface[] {
  const host = config?.[`volatile.${NIC}.host_name`];
  return Object.values(state?.network ?? {}).filter((one) => host !== undefined && one.host_name === host);
}

/** The network card with another speed. */
export function speedOf({ devices }: Instance, portMbps: number): NonNullable<Instance['devices']> {
  const nic = devices?.[NIC];
  return nic ? { [NIC]: { ...nic, ...ratesOf({ portMbps, polices: EGRESS in nic }) } } : {};
}
