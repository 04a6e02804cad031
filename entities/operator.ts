/** The named operators, their roles, and the rights of each role. The token in DATA_DIR is the first owner, without a row. */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { columnsOf, entity, nullable, type RowOf } from './database/table.ts';
import type { Lifecycle } from './history/lifecycle.ts';

export const OPERATOR_ROLES = ['OWNER', 'BILLING', 'SUPPORT', 'READ_ONLY'] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** The roles with each right. A root field of the schema needs one right of an operator. */
export const ROLES_WITH = {
  /** Reads everything that a secret does not protect. */
  read: ['OWNER', 'BILLING', 'SUPPORT', 'READ_ONLY'],
  /** Cares for customers and their servers. */
  support: ['OWNER', 'SUPPORT'],
  /** Moves money. */
  billing: ['OWNER', 'BILLING'],
  /** Changes the installation: engines, hosts, the catalog, the canary, the operators. Makes credentials of customers. */
  owner: ['OWNER'],
} as const satisfies Record<string, readonly OperatorRole[]>;
export type OperatorRight = keyof typeof ROLES_WITH;

export const OPERATOR_STATES = ['ACTIVE', 'ENDED'] as const;

export const Operator = entity('operator', {
  id: column.key(),
  /** Unique among the active operators, in any case. The audit log names it. */
  name: column.text(),
  role: column.oneOf(...OPERATOR_ROLES),
  state: column.oneOf(...OPERATOR_STATES),
  tokenDigest: column.bytes(),
  /** When the token stops working. */
  expiresAt: column.timestamp(),
  createdAt: column.now(),
  endedAt: nullable(column.timestamp()),
});
export type Operator = RowOf<typeof Operator>;

export const OPERATOR_LIFECYCLE: Lifecycle<Operator, Operator['state']> = {
  table: Operator,
  key: 'id',
  state: 'state',
  transitions: { ACTIVE: ['ENDED'], ENDED: [] },
};

/** The operator whose token has the digest $1, and whether the token has expired. */
export const FIND_OPERATOR = statement({ ...Operator.columns, isOver: column.boolean() })`
  select ${columnsOf(Operator)}, expires_at <= now() as is_over from operator where token_digest = $1`;
/** The operator $1. */
export const READ_OPERATOR = statement(Operator.columns)`select ${columnsOf(Operator)} from operator where id = $1`;
/** The operators, the newest first. $1 a state, or null for all. */
export const LIST_OPERATORS = statement(Operator.columns)`
  select ${columnsOf(Operator)} from operator where $1::text is null or state = $1 order by id desc`;
/** Writes an operator, unless an active one has the name. $1 id, $2 name, $3 role, $4 digest of the token, $5 days. */
export const ADD_OPERATOR = statement(Operator.columns)`
  insert into operator (id, name, role, state, token_digest, expires_at)
  values ($1, $2, $3, 'ACTIVE', $4, now() + make_interval(days => $5))
  on conflict do nothing returning ${columnsOf(Operator)}`;
/** Gives the operator $1 the role $2. */
export const SET_ROLE = statement(Operator.columns)`
  update operator set role = $2 where id = $1 returning ${columnsOf(Operator)}`;
/** Gives the operator $1 the token with the digest $2 for $3 days. The earlier token ends. */
export const RENEW_TOKEN = statement(Operator.columns)`
  update operator set token_digest = $2, expires_at = now() + make_interval(days => $3) where id = $1
  returning ${columnsOf(Operator)}`;
