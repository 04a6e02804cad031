/** The wanted state of a machine, as the row of its server tells it. */
import { CHANGING, type Server, type ServerChange, type ServerStatus } from '../../../entities/servers/server.ts';
import type { LeasedTask } from '../../tasks/tasks.ts';
import type { MachineSpec, Power } from '../drivers/driver.ts';
import type { Relocation } from '../placement/relocation.ts';

/** A call that a driver carries out once for each change, so its effect cannot be observed. */
export type Once = 'create' | 'restart' | 'reset' | 'rebuild' | 'resize';

export interface Wanted extends Pick<MachineSpec, 'size' | 'image'> {
  /** Null: a machine that is absent is as good as one that is off. */
  exists: boolean | null;
  power: Power;
  /** The host to which it moves. Null: it stays where it is. */
  host: string | null;
  /** The call that is still to do. */
  once: Once | null;
  /**
   * The call that makes a missing or half-made machine, or that undoes a resize. Null: none, because a machine may have the
   * data of a customer.
   */
  remedy: 'create' | 'rebuild' | 'resize' | null;
  /** Whether it must prove that it booted, for the delivery of an order. */
  proof: boolean;
  /** Whether its time for that is over. */
  late: boolean;
  /** Whether it cannot be finished. */
  givenUp: boolean;
}

const ON: ReadonlySet<ServerStatus> = new Set(['PROVISIONING', 'RUNNING', 'STARTING', 'REBOOTING', 'REBUILDING']);
const ONCE: Partial<Record<ServerChange['operation'], Once>> = {
  reboot: 'restart',
  reset: 'reset',
  rebuild: 'rebuild',
  resize: 'resize',
};

/** A machine that ends off needs no restart before. */
const onceOf = ({ operation, endsOff }: ServerChange): Once | undefined =>
  endsOff && operation !== 'rebuild' ? undefined : ONCE[operation];

/** The change that is in progress. A server that was deleted during a change still has it. */
export const changeOf = ({ status, change }: Server): ServerChange | null =>
  CHANGING.has(status) || status === 'SUSPENDED' ? change : null;

/** The columns of the server after its change. */
export function changedBy(change: ServerChange | null): Partial<Server> {
  if (change?.operation === 'resize')
    return { serviceCode: change.serviceCode, priceMonthMicros: BigInt(change.priceMonthMicros) };
  if (change?.operation !== 'rebuild') return {};
  const { os, sshKeyIds, sshPublicKeys } = change;
  return { os, sshKeyIds, sshPublicKeys };
}

function remedyOf({ status, remedy }: Server): Wanted['remedy'] {
  if (status === 'PROVISIONING') return 'create';
  return status === 'REBUILDING' ? 'rebuild' : remedy;
}

/**
 * @param spec the specification of the server after its change
 * @param relocation its move to another host, if it has one
 */
export function wantedOf(
  server: Server,
  { size, image }: MachineSpec,
  task: Pick<LeasedTask, 'data' | 'now'>,
  relocation?: Relocation,
): Wanted {
  const { status, generation } = server;
  const change = changeOf(server);
  const { done, created, proofBy, givenUp } = task.data;
  const isOrder = status === 'PROVISIONING';
  const isResumed = change?.operation === 'resume' && change.from === 'RUNNING';
  return {
    size,
    image,
    exists: status === 'SUSPENDED' && !change ? null : status !== 'FAILED' && status !== 'DELETING',
    power: (ON.has(status) || isResumed) && !change?.endsOff ? 'on' : 'off',
    host: relocation?.open ? relocation.to : null,
    // The engine has the last word on a machine of an order, even if an earlier call was lost.
    once: isOrder && created === undefined ? 'create' : (change && change.id !== done && onceOf(change)) || null,
    remedy: remedyOf(server),
    proof: isOrder,
    late: isOrder && typeof proofBy === 'string' && Date.parse(proofBy) <= task.now().getTime(),
    givenUp: isOrder && givenUp === generation,
  };
}
