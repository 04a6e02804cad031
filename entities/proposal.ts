/**
 * Sums that operators move while they have a limit. A sum within it moves at once. One above it is a proposal, which waits for
 * another operator.
 */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { columnsOf, entity, nullable, type RowOf } from './database/table.ts';
import { OPERATOR_ACCOUNT } from './history/audit.ts';
import type { Lifecycle } from './history/lifecycle.ts';
import { PAYMENT_STATUSES } from './payments/payment.ts';

const TRANSITIONS = {
  /** It moved at once, and counts for a day in the sum of its operator. */
  WITHIN_LIMIT: [],
  /** It waits for another operator. */
  OPEN: ['APPROVED', 'REFUSED', 'EXPIRED'],
  /** It moved in the transaction of the approval. */
  APPROVED: [],
  REFUSED: [],
  EXPIRED: [],
} as const satisfies Record<string, readonly string[]>;
export type ProposalState = keyof typeof TRANSITIONS;
/** The states of a sum above the limit. */
export const PROPOSAL_STATES = ['OPEN', 'APPROVED', 'REFUSED', 'EXPIRED'] as const;
export const PROPOSAL_KINDS = ['ADJUSTMENT', 'PAYOUT', 'RETURN', 'WRITE_OFF'] as const;

export const Proposal = entity('proposal', {
  id: column.key(),
  state: column.oneOf(...(Object.keys(TRANSITIONS) as ProposalState[])),
  kind: column.oneOf(...PROPOSAL_KINDS),
  /** The operator's own name for it. The adjustment or the payout has the same. A decision about a payment has its own id. */
  key: column.text(),
  accountId: column.text(),
  /** Negative: taken from the account. */
  amountMicros: column.bigint(),
  reason: column.text(),
  /** The payment that a return sends back, or that the operator writes off. */
  paymentId: nullable(column.text()),
  /** The state of the payment that the operator saw. */
  paymentStatus: nullable(column.oneOf(...PAYMENT_STATUSES)),
  /** The transaction by which the operator has sent the coins of a return. Null: a payout sends them. */
  returnTxId: nullable(column.text()),
  /** The coin and the address of a payout or a return. */
  coin: nullable(column.text()),
  address: nullable(column.text()),
  /** The signature of the address, and the ledger account of the coins, as the operator gave them. */
  signature: nullable(column.text()),
  source: nullable(column.text()),
  /** The operator's id, or `operator` for the token in DATA_DIR. */
  proposerId: column.text(),
  proposerName: column.text(),
  /** The operator who approved or refused it. */
  deciderName: nullable(column.text()),
  createdAt: column.now(),
  expiresAt: column.timestamp(),
  decidedAt: nullable(column.timestamp()),
});
export type Proposal = RowOf<typeof Proposal>;

export const PROPOSAL_LIFECYCLE: Lifecycle<Proposal, ProposalState> = {
  table: Proposal,
  key: 'id',
  state: 'state',
  transitions: TRANSITIONS,
};

/** The oldest $1 proposals that wait, also expired ones. Null: all. */
export const LIST_OPEN_PROPOSALS = statement(Proposal.columns)`
  select ${columnsOf(Proposal)} from proposal where state = 'OPEN' order by id limit $1`;
/** The proposals that have waited too long. */
export const LIST_OVER_PROPOSALS = statement({ id: column.key() })`
  select id from proposal where state = 'OPEN' and expires_at <= now() order by id`;
/** Whether the proposal $1 waits, and has not expired. */
export const IS_PROPOSAL_OPEN = statement({ open: column.boolean() })`
  select exists (select from proposal where id = $1 and state = 'OPEN' and expires_at > now()) as open`;

/** For so many days an operator is new, after an owner gave a role or a way in. */
const POWER_DAYS = 7;
/** The acts that make an operator new. New recovery codes are no such act. */
const NEW_POWER_SQL = `account_id = '${OPERATOR_ACCOUNT}' and type = 'operator.updated'
      and created_at > now() - interval '${POWER_DAYS} days' and data->>'renewed' is distinct from 'recovery_codes'`;
/** The last such act on the operator $1, and the end of the wait. */
export const FIND_NEW_POWER = statement({ at: column.timestamp(), until: column.timestamp() })`
  select created_at as at, created_at + interval '${POWER_DAYS} days' as until from event
    where subject = $1 and ${NEW_POWER_SQL} order by id desc limit 1`;
/**
 * The sum, without signs, that the operator $1 moved in the last 24 hours without an approval. All new operators count
 * together, because an owner can make many.
 */
export const SUM_PASSED = statement({ passedMicros: column.bigint() })`
  with new_operator as (select subject from event where ${NEW_POWER_SQL})
  select coalesce(sum(abs(amount_micros)), 0)::bigint as passed_micros from proposal
    where state = 'WITHIN_LIMIT' and created_at > now() - interval '24 hours'
      and (proposer_id = $1 or ($1 in (select subject from new_operator) and proposer_id in (select subject from new_operator)))`;
