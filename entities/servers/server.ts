/** Servers: the row, the table of its states, and the one statement that orders one. */
import {
  bigint,
  boolean,
  bytes,
  columnsOf,
  defaulting,
  entity,
  inet,
  int,
  json,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  textArray,
  timestamp,
} from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

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

/** What is under way with a machine that exists. It is applied to the row only when it has come to a good end. */
export type ServerChange = {
  /** Machines and transfers know the change by it: the same one twice is one. */
  id: string;
  /** The state that it falls back to. */
  from: 'RUNNING' | 'STOPPED';
} & (
  | { operation: 'start' | 'stop' | 'reboot' | 'reset' }
  | { operation: 'rebuild'; os: string; sshKeyIds: string[]; sshPublicKeys: string[]; userData: string | null }
  | {
      operation: 'resize';
      /** The new tier, of which a place is held beside the one of the old. */
      serviceCode: string;
      /** Micro-USD, as text because JSON has no such integers. */
      priceMonthMicros: string;
      /** Micro-USD that are held for it. */
      heldMicros: string;
    }
  /** Of a suspended server, which goes back to that state; the month that it resumes with is held. */
  | { operation: 'resume'; heldMicros: string }
);

export const Server = entity(
  'server',
  {
    id: key(),
    accountId: text(),
    orderNumber: text(),
    kind: oneOf('VPS', 'DEDICATED'),
    status: oneOf(...SERVER_STATUSES),
    hostname: text(),
    serviceCode: text(),
    region: text(),
    os: text(),
    /** The host that its machine is on; null where the driver has but one. */
    host: nullable(text()),
    /** Grows by one with each machine that had to be given up; drivers know a machine by order number and generation. */
    generation: defaulting(int(), 1),
    ipv4: nullable(inet()),
    ipv6: nullable(inet()),
    ipv6Prefix: nullable(text()),
    reverseDns: defaulting(json<{ ip: string; ptr: string }[]>(), "'[]'"),
    sshKeyIds: textArray(),
    /** As they were when the server was ordered: deleting a key does not lock its owner out of a rebuild. */
    sshPublicKeys: textArray(),
    userData: nullable(text()),
    /** Sealed, and erased once the machine has it. */
    rootPassword: nullable(bytes()),
    labels: defaulting(json<Record<string, string>>(), "'{}'"),
    autoRenew: defaulting(boolean(), 'true'),
    deleteProtection: defaulting(boolean(), 'false'),
    priceMonthMicros: bigint(),
    setupFeeMicros: bigint(),
    paidUntil: nullable(timestamp()),
    /** While SUSPENDED: since when, and the state to which it resumes. */
    suspendedAt: nullable(timestamp()),
    suspendedFrom: nullable(oneOf('RUNNING', 'STOPPED')),
    failureCode: nullable(text()),
    failureMessage: nullable(text()),
    /** Kept while it is carried out, and until a machine that is deleted meanwhile is gone. */
    change: nullable(json<ServerChange>()),
    createdAt: now(),
    updatedAt: now(),
  },
  [
    { name: 'server_order_number', columns: ['orderNumber'], unique: true },
    { name: 'server_account', columns: ['accountId', 'id'] },
    { name: 'server_live', columns: ['accountId', 'id'], where: `status <> 'DELETED'` },
    { name: 'server_due', columns: ['paidUntil'], where: `status in ('RUNNING', 'STOPPED')` },
    { name: 'server_suspended', columns: ['accountId', 'paidUntil'], where: `status = 'SUSPENDED'` },
    { name: 'server_reverse_dns', columns: ['id'], where: `reverse_dns <> '[]'` },
  ],
);
export type Server = RowOf<typeof Server>;

/** What no answer shows, and may be large: only making the machine needs it. */
const FOR_THE_MACHINE = ['sshPublicKeys', 'userData', 'rootPassword'] as const;
export type ShownServer = Omit<Server, (typeof FOR_THE_MACHINE)[number]>;
/** The select list of what is shown. */
export const SHOWN_COLUMNS = columnsOf(Server, 'server', FOR_THE_MACHINE);

/**
 * Locks the server $1, if it is one of these, and its account before it: one statement for the order of lock-order.ts. The
 * count makes PostgreSQL wait for the account first.
 */
export const lockServerSql = (columns: string, where = 'true'): string => `
  with account as (
    select from balance where account_id = (select account_id from server where order_number = $1) for update)
  select ${columns} from server
  where order_number = $1 and ${where} and (select count(*) from account) >= 0 for update`;

/** What becomes of a server. DELETING is reached from every state but itself and DELETED. */
export const SERVER_LIFECYCLE: Lifecycle<Server, ServerStatus> = {
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
    REBOOTING: ['RUNNING', 'DELETING'],
    REBUILDING: ['RUNNING', 'STOPPED', 'DELETING'],
    RESIZING: ['STOPPED', 'DELETING'],
    SUSPENDED: ['RUNNING', 'STOPPED', 'DELETING'],
    FAILED: ['DELETING'],
    DELETING: ['DELETED'],
    DELETED: [],
  },
  told: {
    resource: 'server',
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
