/**
 * Deployments: a dedicated machine on its way to a host, and off it again. A row exists for each host that is not free. It
 * holds the system, the progress, and the next command for the controller. It emits no events: those of the server do.
 */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { transition } from '../history/transition.ts';

export const DEPLOYMENT_STATES = [
  'WAITING',
  'INSTALLING',
  'INSTALLED',
  'BOOTED',
  'WIPING',
  'WIPED',
  'RETIRED',
] as const;

export const Deployment = entity('deployment', {
  id: column.key(),
  orderNumber: column.text(),
  generation: column.int(),
  /** The name of the host. */
  box: column.text(),
  /** The MAC address of the card that boots from the network; lower case, with colons. */
  mac: column.text(),
  state: defaulting(column.oneOf(...DEPLOYMENT_STATES), "'WAITING'"),
  /** Grows with each installation, and with the wipe. Tokens of earlier runs open nothing. */
  run: defaulting(column.int(), 1),
  image: column.text(),
  /** SHA-256 of the specification, in hex. */
  specDigest: column.text(),
  /** Sealed: host name, keys, user data and root password of the new system. Erased when it is on the disk. */
  seed: nullable(column.bytes()),
  /** The device that the host boots from next. */
  device: defaulting(column.oneOf('PXE', 'DISK'), "'PXE'"),
  /** The halves of a power cycle that are still to do: OFF both, ON the second. Null: none. */
  cycle: nullable(column.oneOf('OFF', 'ON')),
  /** The id of the last change. */
  change: nullable(column.text()),
  /** How often the driver has restarted a silent wiper of this run. */
  restarts: defaulting(column.int(), 0),
  /** The last news of the installer or the wiper. */
  report: nullable(column.text()),
  /** The users that the controller had before the machine was there, as `id:name:privilege`. Null: unknown. */
  bmcUsers: nullable({ ...column.textArray(), default: undefined }),
  /** The reason why the operator overrode the driver. */
  note: nullable(column.text()),
  createdAt: column.now(),
  updatedAt: column.now(),
});
export type Deployment = RowOf<typeof Deployment>;
export const SEED = sealedColumn(Deployment, 'seed', 'id');
export type DeploymentState = Deployment['state'];

/**
 * A host is wiped once its machine has got its installer; then the row goes. RETIRED keeps the host from being sold until
 * the operator declares it wiped.
 */
export const DEPLOYMENT_LIFECYCLE: Lifecycle<Deployment, DeploymentState> = {
  table: Deployment,
  key: 'id',
  state: 'state',
  transitions: {
    WAITING: ['WAITING', 'INSTALLING', 'WIPING', 'RETIRED'],
    INSTALLING: ['WAITING', 'INSTALLED', 'WIPING', 'RETIRED'],
    INSTALLED: ['WAITING', 'BOOTED', 'WIPING', 'RETIRED'],
    BOOTED: ['WAITING', 'WIPING', 'RETIRED'],
    WIPING: ['WIPED', 'RETIRED'],
    WIPED: ['RETIRED'],
    RETIRED: [],
  },
};

/**
 * Moves a deployment to another state, unless another run has begun since it was read.
 * @returns the row after the move, or undefined without a move
 */
export function moveDeployment(
  db: Queryable,
  { id, run }: Pick<Deployment, 'id' | 'run'>,
  to: DeploymentState,
  set: Partial<Deployment> = {},
): Promise<Deployment | undefined> {
  return transition(db, DEPLOYMENT_LIFECYCLE, id, to, { set, where: { run } });
}

/**
 * A deployment with the IPv4 address of its system; null where DHCP decides (seed.ts). And the seconds without a command to
 * the host, or news from it.
 */
const ADDRESSED = { ...Deployment.columns, address: nullable(column.text()), silentSeconds: column.int() };
const ADDRESSED_SQL = `${columnsOf(Deployment)}, extract(epoch from now() - updated_at)::int as silent_seconds, (select host(address) from address
  where held_by = deployment.order_number and family = 'IPV4' and gateway is not null) as address`;
export type AddressedDeployment = Row<typeof ADDRESSED>;

const BOOTING = { ...Deployment.columns, disks: nullable(column.textArray()), isolated: nullable(column.boolean()) };
export type BootingDeployment = Row<typeof BOOTING>;
/**
 * A deployment with the disks of its host. `isolated` tells about the network that it boots from. Both are null without the
 * host. $1 MAC address or null, $2 id or null.
 */
export const FIND_BOOTING = statement(BOOTING)`
  select ${columnsOf(Deployment)}, host.disks, host.boot_network_isolated as isolated
  from deployment left join host on host.name = deployment.box where deployment.mac = $1 or deployment.id = $2`;

/** The deployment of a machine. $1 order number, $2 generation. */
export const FIND_DEPLOYMENT = statement(ADDRESSED)`
  select ${ADDRESSED_SQL} from deployment where order_number = $1 and generation = $2`;
/** The first $1 deployments. */
export const LIST_DEPLOYMENTS = statement(ADDRESSED)`select ${ADDRESSED_SQL} from deployment order by id limit $1::int`;
/** Locks the deployments whose disks a machine is about to write, or whose host is about to be free. */
export const LOCK_UNSETTLED_DEPLOYMENTS = statement({ id: column.key(), run: column.int(), box: column.text() })`
  select id, run, box from deployment where state in ('WAITING', 'INSTALLING', 'WIPING', 'WIPED') order by box for update`;
/**
 * Reserves a host for a machine, unless either has a deployment. $1 id, $2 order number, $3 generation, $4 host, $5 MAC
 * address, $6 image. $7 digest, $8 seed, $9 the users of its controller. The host forgets those from before.
 */
export const BEGIN_DEPLOYMENT = statement(ADDRESSED)`
  with begun as (
    insert into deployment (id, order_number, generation, box, mac, image, spec_digest, seed, bmc_users, cycle)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'OFF') on conflict do nothing returning *),
  compared as (update host set bmc_users = null from begun where name = box and host.bmc_users is not null)
  select ${ADDRESSED_SQL} from begun as deployment`;
/** Plans a power cycle. $1 id, $2 run, $3 device, $4 the halves of the cycle, $5 the change or null. */
export const PLAN_POWER_CYCLE = statement({})`
  update deployment set device = $3, cycle = $4, change = coalesce($5, change), updated_at = now()
  where id = $1 and run = $2`;
/** Notes that half a cycle is done, unless the plan is another by now. $1 id, $2 run, $3 that half, $4 device. */
export const NOTE_POWER_CYCLE = statement({})`
  update deployment set cycle = case cycle when 'OFF' then 'ON' end, updated_at = now()
  where id = $1 and run = $2 and cycle = $3 and device = $4`;
/** Plans to boot a silent wiper once more. $1 id, $2 run. */
export const RESTART_WIPER = statement({})`
  update deployment set cycle = 'OFF', device = 'PXE', restarts = restarts + 1, updated_at = now()
  where id = $1 and run = $2 and state = 'WIPING' and cycle is null`;
/** Keeps what the installer or the wiper says. $1 id, $2 run, $3 text, $4 whether it is progress: then it is not silent. */
export const NOTE_REPORT = statement({})`
  update deployment set report = $3, updated_at = case when $4::boolean then now() else updated_at end
  where id = $1 and run = $2`;
/** Frees the host of a deployment that is wiped, or that never got its installer. $1 id, $2 run. */
export const RELEASE_DEPLOYMENT = statement({})`
  delete from deployment where id = $1 and run = $2 and (state = 'WIPED' or (state = 'WAITING' and run = 1))`;
