/** Manual jobs: the work that an operator does by hand on a machine, and its result. */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { expression, moveStatement } from '../history/transition.ts';

export const ManualJob = entity('manual_job', {
  id: column.key(),
  orderNumber: column.text(),
  generation: column.int(),
  action: column.oneOf('CREATE', 'POWER', 'REBUILD', 'RESIZE', 'DESTROY'),
  /** The id of the change; empty for CREATE and DESTROY, which a machine has once. */
  change: column.text(),
  /** The change of power (POWER). */
  power: nullable(column.oneOf('on', 'off', 'restart', 'reset')),
  /** SHA-256 of the specification, in hex. */
  specDigest: nullable(column.text()),
  /** Sealed: the specification of the machine. Erased when the job closes. */
  spec: nullable(column.bytes()),
  state: defaulting(column.oneOf('OPEN', 'DONE', 'FAILED'), "'OPEN'"),
  /** The operator's comment. */
  note: nullable(column.text()),
  createdAt: column.now(),
  closedAt: nullable(column.timestamp()),
});
export type ManualJob = RowOf<typeof ManualJob>;

export const JOB_SPEC = sealedColumn(ManualJob, 'spec', 'id');

export const MANUAL_JOB_LIFECYCLE: Lifecycle<ManualJob, ManualJob['state']> = {
  table: ManualJob,
  key: 'id',
  state: 'state',
  transitions: { OPEN: ['DONE', 'FAILED'], DONE: [], FAILED: [] },
};

/** Adds a job, unless the machine has one for that action and change. The parameters are the columns in order. */
export const ADD_MANUAL_JOB = statement({})`
  insert into manual_job (id, order_number, generation, action, change, power, spec_digest, spec)
  values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`;
/** The first $1 jobs of machines that are not gone, oldest first. */
export const LIST_JOBS_OF_MACHINES = statement(ManualJob.columns)`
  select ${columnsOf(ManualJob)} from manual_job where not exists (
    select from manual_job gone where gone.order_number = manual_job.order_number
      and gone.generation = manual_job.generation and gone.action = 'DESTROY' and gone.state = 'DONE')
  order by id limit $1::int`;
/** The first $1 jobs: open ones before the others, the oldest first. */
export const LIST_MANUAL_JOBS = statement(ManualJob.columns)`
  select ${columnsOf(ManualJob)} from manual_job order by state <> 'OPEN', id limit $1::int`;
/** Locks the open jobs of the machine of a job. $1 id of that job. */
export const LOCK_OPEN_JOBS = statement(ManualJob.columns)`
  select ${columnsOf(ManualJob)} from manual_job
  where state = 'OPEN' and (order_number, generation) = (select order_number, generation from manual_job where id = $1)
  order by id for update`;

/** The comment of jobs that close because their machine is gone. */
export const MACHINE_IS_GONE = 'The machine is gone.';
/** Closes the open jobs of the order $1, whose machines are gone, with the note $2. Another order can have their addresses. */
const CLOSE_JOBS_OF_GONE = moveStatement(MANUAL_JOB_LIFECYCLE, 'FAILED', `order_number = $1 and state = 'OPEN'`, {
  note: expression('$2::text'),
  spec: expression('null'),
  closedAt: expression('now()'),
});
export const closeJobsOfGone = (tx: Transaction, orderNumber: string): Promise<unknown> =>
  CLOSE_JOBS_OF_GONE.all(tx, [orderNumber, MACHINE_IS_GONE]);
