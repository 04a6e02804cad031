/** What the operator publishes of itself: canaries, peering, incidents. Health is not kept, it is looked at. */
import { entity, json, key, now, nullable, oneOf, type RowOf, text, textArray, timestamp } from '../database/table.ts';

/**
 * What a warrant canary says has not happened, in the codes of CanaryTail: orders to cease, duress, gag orders, raids,
 * seizures, subpoenas, traps, war, compromised credentials and operations. A code that is missing has happened.
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
/** How long a canary is good for, unless its operator says otherwise. */
export const CANARY_DAYS = 35;

/** Append-only: each statement names the digest of the one before. */
export const Canary = entity('canary', {
  id: key(),
  version: text(),
  issuedAt: timestamp(),
  expiresAt: timestamp(),
  codes: textArray(),
  statement: text(),
  /** Clear-signed off-line; the service only serves it. */
  signedText: nullable(text()),
  fingerprint: nullable(text()),
  publicKey: nullable(text()),
  /** Something that could not be known before, such as the hash of a recent Bitcoin block. */
  freshness: nullable(text()),
  /** Of the signed text, or else of the statement. */
  sha256: text(),
  previousSha256: nullable(text()),
  createdAt: now(),
});
export type Canary = RowOf<typeof Canary>;

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
/** At most one row. */
export const Peering = entity('peering', { id: key(), document: json<PeeringDocument>(), updatedAt: now() });
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
  id: key(),
  name: text(),
  status: oneOf(...INCIDENT_STATUSES),
  impact: oneOf(...IMPACTS),
  /** Ids of components. */
  components: textArray(),
  startedAt: timestamp(),
  resolvedAt: nullable(timestamp()),
  updates: json<IncidentUpdate[]>(),
});
export type Incident = RowOf<typeof Incident>;
