/** Servers: the row, and the lifecycle of its status. */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { columnsOf, defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import type { ToldLifecycle } from '../history/lifecycle.ts';
import { TRAFFIC_USED_SQL } from './metering/meter.ts';

export const SERVER_STATUSES = [
  'PENDING',
  'PROVISIONING',
  'RUNNING',
  'STARTING',
  'STOPPING',
  'STOPPED',
  'REBOOTING',
  'REBUILDING',
  'RESIZING',
  'SUSPENDED',
  'FAILED',
  'DELETING',
  'DELETED',
] as const;
export type ServerStatus = (typeof SERVER_STATUSES)[number];

/** States in which nothing is under way. */
export const STABLE: ReadonlySet<ServerStatus> = new Set(['RUNNING', 'STOPPED', 'SUSPENDED', 'FAILED', 'DELETED']);

/** States in which a change of a running or stopped server is carried out. */
export const CHANGING: ReadonlySet<ServerStatus> = new Set([
  'STARTING',
  'STOPPING',
  'REBOOTING',
  'REBUILDING',
  'RESIZING',
]);

/** The change that the worker carries out on a machine. The worker writes it to the columns of the server when it succeeds. */
export type ServerChange = {
  /** Machines and transfers note this id, so a repeated step has no second effect. */
  id: string;
  /** The status that a failed change restores. */
  from: 'RUNNING' | 'STOPPED';
  /** The operator turns the server off, so it is STOPPED when its change ends or fails. */
  endsOff?: true;
} & (
  | { operation: 'start' | 'stop' | 'reboot' | 'reset' }
  | { operation: 'rebuild'; os: string; sshKeyIds: string[]; sshPublicKeys: string[] }
  | {
      operation: 'resize';
      /** The new tier. The server holds a place of it, and still one of the old tier. */
      serviceCode: string;
      /** Micro-USD, as text: JSON cannot hold 64-bit integers. */
      priceMonthMicros: string;
      /** The micro-USD held for the change. */
      heldMicros: string;
      /** The price that was announced for the new tier meanwhile. Null: it was withdrawn. */
      nextPriceMicros?: string | null;
      nextPriceFrom?: string | null;
    }
  /** Resumes a suspended server into `from`. The next month is held. `reported`: its customer knows that it takes long. */
  | { operation: 'resume'; heldMicros: string; reported?: true }
);

export const Server = entity('server', {
  id: column.key(),
  accountId: column.text(),
  orderNumber: column.text(),
  kind: column.oneOf('VPS', 'DEDICATED'),
  status: column.oneOf(...SERVER_STATUSES),
  hostname: column.text(),
  serviceCode: column.text(),
  region: column.text(),
  os: column.text(),
  /** The host of its machine; null if the driver uses no hosts. */
  host: nullable(column.text()),
  /** The operator's engine that has its machine. Null: the engine of the environment for its kind. */
  engine: nullable(column.text()),
  /** The number of the machine of this order. It grows when the worker gives a machine up. */
  generation: defaulting(column.int(), 1),
  ipv4: nullable(column.inet()),
  ipv6: nullable(column.inet()),
  ipv6Prefix: nullable(column.text()),
  reverseDns: defaulting(column.json<{ ip: string; ptr: string }[]>(), "'[]'"),
  sshKeyIds: column.textArray(),
  /** Copies of the keys, so that a rebuild works after the customer deleted a key. */
  sshPublicKeys: column.textArray(),
  /** Sealed, as the root password is. The worker erases both once the machine has booted with them. */
  userData: nullable(column.bytes()),
  rootPassword: nullable(column.bytes()),
  labels: defaulting(column.json<Record<string, string>>(), "'{}'"),
  autoRenew: defaulting(column.boolean(), 'true'),
  deleteProtection: defaulting(column.boolean(), 'false'),
  priceMonthMicros: column.bigint(),
  setupFeeMicros: column.bigint(),
  /** The announced price of months that begin at that time or later. Null: none is announced. */
  nextPriceMicros: nullable(column.bigint()),
  nextPriceFrom: nullable(column.timestamp()),
  paidUntil: nullable(column.timestamp()),
  /** When the order ended without proof of its machine, or was deleted while its host was being installed. */
  unprovenAt: nullable(column.timestamp()),
  suspendedAt: nullable(column.timestamp()),
  /** The status to which a SUSPENDED server resumes. */
  suspendedFrom: nullable(column.oneOf('RUNNING', 'STOPPED')),
  /** Whether the suspension of its account turned it off, so that it is turned on again at the end. */
  keptOff: defaulting(column.boolean(), 'false'),
  failureCode: nullable(column.text()),
  failureMessage: nullable(column.text()),
  /** The call that undoes a failed change, until a worker has done it. Later changes leave it. Null: none. */
  remedy: nullable(column.oneOf('rebuild', 'resize')),
  /** The last words of the engine about a failed call, for the operator. */
  trouble: nullable(column.text()),
  troubleAt: nullable(column.timestamp()),
  /** Null without a change. A deleted server keeps it until its machine is gone. */
  change: nullable(column.json<ServerChange>()),
  createdAt: column.now(),
  updatedAt: column.now(),
});
export type Server = RowOf<typeof Server>;

export const ROOT_PASSWORD = sealedColumn(Server, 'rootPassword', 'order_number');
export const USER_DATA = sealedColumn(Server, 'userData', 'order_number');

/** The values of a server without secrets: it has booted with them, or never will. */
export const ERASED = { rootPassword: null, userData: null };

/**
 * Whether a server is an undelivered dedicated order that still has its host. It was deleted before its delivery, or failed
 * after its machine ran. Its hold lasts as long, so money never holds two hosts at once.
 */
export const KEEPS_HOLD_SQL = `kind = 'DEDICATED' and status in ('FAILED', 'DELETING') and unproven_at is not null
  and paid_until is null
  and not exists (select from transfer where external_key = 'release:' || server.order_number)`;
/** The micro-USD of that hold. The failure of an order has captured its hours. */
export const KEPT_HOLD_SQL = `price_month_micros + setup_fee_micros - coalesce((
  select amount_micros from transfer where external_key = 'capture:' || server.order_number), 0)`;

/** The columns that answers show: all but large ones, secrets that only drivers need, and those for the operator. */
const { sshPublicKeys, userData, rootPassword, remedy, trouble, troubleAt, ...shown } = Server.columns;
const USED = { trafficUsedBytes: nullable(column.bigint()) };
export const SHOWN_SERVER = { ...shown, ...USED };
/** A server as answers show it. A row that comes from a change lacks the traffic. */
export type ShownServer = Row<typeof shown> & Partial<Row<typeof USED>>;
export const SHOWN_COLUMNS = `${columnsOf(
  Server,
  'server',
  Object.keys({ sshPublicKeys, userData, rootPassword, remedy, trouble, troubleAt }),
)}, ${TRAFFIC_USED_SQL} as traffic_used_bytes`;

/**
 * Locks the server $1 if the condition holds, and its account before it, in the order of lock-order.ts. The count makes
 * PostgreSQL wait for the account first.
 */
export const lockServerSql = (columns: string, where = 'true'): string => `
  with account as (
    select from balance where account_id = (select account_id from server where order_number = $1) for update)
  select ${columns} from server
  where order_number = $1 and ${where} and (select count(*) from account) >= 0 for update`;

/** A server can be deleted in every state but DELETING and DELETED. */
export const SERVER_LIFECYCLE: ToldLifecycle<Server, ServerStatus> = {
  table: Server,
  key: 'orderNumber',
  state: 'status',
  transitions: {
    PENDING: ['PROVISIONING', 'FAILED', 'DELETING'],
    PROVISIONING: ['RUNNING', 'FAILED', 'DELETING'],
    RUNNING: ['STOPPING', 'REBOOTING', 'REBUILDING', 'SUSPENDED', 'DELETING'],
    STOPPED: ['STARTING', 'REBUILDING', 'RESIZING', 'SUSPENDED', 'DELETING'],
    STARTING: ['RUNNING', 'STOPPED', 'DELETING'],
    STOPPING: ['STOPPED', 'RUNNING', 'DELETING'],
    REBOOTING: ['RUNNING', 'STOPPED', 'DELETING'],
    REBUILDING: ['RUNNING', 'STOPPED', 'DELETING'],
    RESIZING: ['STOPPED', 'DELETING'],
    SUSPENDED: ['RUNNING', 'STOPPED', 'DELETING'],
    FAILED: ['DELETING'],
    DELETING: ['DELETED'],
    DELETED: [],
  },
  told: {
    change: 'server',
    events: {
      PENDING: 'server.created',
      PROVISIONING: 'server.provisioning',
      RUNNING: 'server.running',
      STARTING: 'server.updated',
      STOPPING: 'server.updated',
      STOPPED: 'server.stopped',
      REBOOTING: 'server.updated',
      REBUILDING: 'server.updated',
      RESIZING: 'server.updated',
      SUSPENDED: 'server.suspended',
      FAILED: 'server.failed',
      DELETING: 'server.updated',
      DELETED: 'server.deleted',
    },
  },
};
