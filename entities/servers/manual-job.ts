/** What an operator has to do by hand with a machine, and whether it is done. */
import {
  bytes,
  defaulting,
  entity,
  int,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamp,
} from '../database/table.ts';

export const ManualJob = entity(
  'manual_job',
  {
    id: key(),
    orderNumber: text(),
    generation: int(),
    action: oneOf('CREATE', 'POWER', 'REBUILD', 'RESIZE', 'DESTROY'),
    /** The change that it belongs to; empty where a machine has but one such job. */
    change: text(),
    /** What is to become of the power (POWER). */
    power: nullable(oneOf('on', 'off', 'restart', 'reset')),
    /** SHA-256 of what was ordered, in hex. */
    specDigest: nullable(text()),
    /** Sealed: the specification of the machine. Erased when the job is closed. */
    spec: nullable(bytes()),
    state: defaulting(oneOf('OPEN', 'DONE', 'FAILED'), "'OPEN'"),
    /** What the operator says of it. */
    note: nullable(text()),
    createdAt: now(),
    closedAt: nullable(timestamp()),
  },
  [
    { name: 'manual_job_change', columns: ['orderNumber', 'generation', 'action', 'change'], unique: true },
    { name: 'manual_job_open', columns: ['id'], where: `state = 'OPEN'` },
  ],
);
export type ManualJob = RowOf<typeof ManualJob>;
