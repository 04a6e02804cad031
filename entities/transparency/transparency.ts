/** The publications of the operator: canaries, peering, incidents. */
import * as column from '../database/column.ts';
import { LOCK_NAME } from '../database/lock-name.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, nullable, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

/**
 * The codes of CanaryTail. Each denies an event: orders to cease, duress, gag orders, raids, seizures, subpoenas, traps, war,
 * compromised credentials and operations. A missing code means that the event has happened.
 */
export const CANARY_CODES = [
  'CEASE',
  'DURESS',
  'GAG',
  'RAID',
  'SEIZE',
  'SUBP',
  'TRAP',
  'WAR',
  'XCRED',
  'XOPERS',
] as const;
/** Days until a canary expires, unless the operator names a time. */
export const CANARY_DAYS = 35;

/** An append-only table: each canary names the digest of its predecessor. */
export const Canary = entity('canary', {
  id: column.key(),
  version: column.text(),
  issuedAt: column.timestamp(),
  expiresAt: column.timestamp(),
  codes: column.textArray(),
  statement: column.text(),
  /** The text that the operator has signed offline. The service only serves it. */
  signedText: nullable(column.text()),
  fingerprint: nullable(column.text()),
  publicKey: nullable(column.text()),
  /** A proof of the date, such as the hash of a recent Bitcoin block. */
  freshness: nullable(column.text()),
  /** Digest of the signed text, or else of the statement. */
  sha256: column.text(),
  previousSha256: nullable(column.text()),
  createdAt: column.now(),
});
export type Canary = RowOf<typeof Canary>;

/** Reads the latest canary. */
export const LATEST_CANARY = statement(Canary.columns)`
  select ${columnsOf(Canary)} from canary order by id desc limit 1`;

/** Makes transactions that publish a canary wait for each other, so that two canaries do not name the same predecessor. */
export const lockCanaries = (tx: Transaction): Promise<unknown> => LOCK_NAME.all(tx, ['canary']);

export interface PeeringDocument {
  asn: number | null;
  name: string;
  irrAsSet: string | null;
  policy: string;
  policyUrl: string | null;
  nocEmail: string | null;
  peeringdbUrl: string | null;
  infoPrefixes4: number | null;
  infoPrefixes6: number | null;
  exchanges: {
    name: string;
    city: string;
    country: string;
    speedMbps: number;
    ipv4: string | null;
    ipv6: string | null;
    isRsPeer: boolean;
    operational: boolean;
  }[];
  facilities: { name: string; city: string; country: string }[];
}
/** The table has at most one row. */
export const Peering = entity('peering', {
  id: column.key(),
  document: column.json<PeeringDocument>(),
  updatedAt: column.now(),
});
export type Peering = RowOf<typeof Peering>;

export const INCIDENT_STATUSES = [
  'INVESTIGATING',
  'IDENTIFIED',
  'MONITORING',
  'RESOLVED',
  'SCHEDULED',
  'IN_PROGRESS',
  'COMPLETED',
] as const;
export type IncidentStatus = (typeof INCIDENT_STATUSES)[number];
export const IMPACTS = ['NONE', 'MINOR', 'MAJOR', 'CRITICAL', 'MAINTENANCE'] as const;
export type Impact = (typeof IMPACTS)[number];

export interface IncidentUpdate {
  status: IncidentStatus;
  body: string;
  /** RFC 3339. */
  createdAt: string;
}
export const Incident = entity('incident', {
  id: column.key(),
  name: column.text(),
  status: column.oneOf(...INCIDENT_STATUSES),
  impact: column.oneOf(...IMPACTS),
  /** Ids of components. */
  components: column.textArray(),
  startedAt: column.timestamp(),
  resolvedAt: nullable(column.timestamp()),
  updates: column.json<IncidentUpdate[]>(),
});
export type Incident = RowOf<typeof Incident>;

/** The operator may report any status after any other: the incident shows what the operator writes. */
export const INCIDENT_LIFECYCLE: Lifecycle<Incident, IncidentStatus> = {
  table: Incident,
  key: 'id',
  state: 'status',
  transitions: {
    INVESTIGATING: INCIDENT_STATUSES,
    IDENTIFIED: INCIDENT_STATUSES,
    MONITORING: INCIDENT_STATUSES,
    RESOLVED: INCIDENT_STATUSES,
    SCHEDULED: INCIDENT_STATUSES,
    IN_PROGRESS: INCIDENT_STATUSES,
    COMPLETED: INCIDENT_STATUSES,
  },
};

/** Returns the latest 50 incidents and maintenances that are open. */
export const OPEN_INCIDENTS = statement(Incident.columns)`
  select ${columnsOf(Incident)} from incident where resolved_at is null order by id desc limit 50`;
