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

/** An invited operator has no way in but the code of the invitation. */
export const OPERATOR_STATES = ['INVITED', 'ACTIVE', 'ENDED'] as const;

export const Operator = entity('operator', {
  id: column.key(),
  /** Unique among the operators that have not ended, in any case. The audit log names it. */
  name: column.text(),
  role: column.oneOf(...OPERATOR_ROLES),
  state: column.oneOf(...OPERATOR_STATES),
  /** Null for an operator who signs in. */
  tokenDigest: nullable(column.bytes()),
  /** When the token stops working. Null without a token. */
  expiresAt: nullable(column.timestamp()),
  /** argon2id in PHC form. Null for an operator with a token. The second factor is a row of `totp` under the id. */
  passwordHash: nullable(column.text()),
  invitationDigest: nullable(column.bytes()),
  invitationExpiresAt: nullable(column.timestamp()),
  createdAt: column.now(),
  endedAt: nullable(column.timestamp()),
});
export type Operator = RowOf<typeof Operator>;

export const OPERATOR_LIFECYCLE: Lifecycle<Operator, Operator['state']> = {
  table: Operator,
  key: 'id',
  state: 'state',
  transitions: {
    INVITED: ['INVITED', 'ACTIVE', 'ENDED'],
    /** An owner invites an operator again who has lost the password or the second factor. */
    ACTIVE: ['INVITED', 'ENDED'],
    ENDED: [],
  },
};

/** The operator whose token has the digest $1, and whether the token has expired. */
export const FIND_OPERATOR = statement({ ...Operator.columns, isOver: column.boolean() })`
  select ${columnsOf(Operator)}, expires_at <= now() as is_over from operator where token_digest = $1`;
/** The operator $1. */
export const READ_OPERATOR = statement(Operator.columns)`select ${columnsOf(Operator)} from operator where id = $1`;
/** The operators, the newest first. $1 a state, or null for all. */
export const LIST_OPERATORS = statement(Operator.columns)`
  select ${columnsOf(Operator)} from operator where $1::text is null or state = $1 order by id desc`;
/** The operator with the name $1, in any case: the active one, or else the last one. */
export const FIND_BY_NAME = statement(Operator.columns)`
  select ${columnsOf(Operator)} from operator where lower(name) = lower($1) order by state = 'ACTIVE' desc, id desc limit 1`;
/** The operator whose invitation has the digest $1 and has not expired. */
export const FIND_INVITED = statement({ ...Operator.columns, secondsLeft: column.real() })`
  select ${columnsOf(Operator)}, extract(epoch from invitation_expires_at - now())::float8 as seconds_left from operator
    where invitation_digest = $1 and state = 'INVITED' and invitation_expires_at > now()`;
/** Writes an operator, unless one that has not ended has the name. $1 id, $2 name, $3 role, $4 digest of the token, $5 days. */
export const ADD_OPERATOR = statement(Operator.columns)`
  insert into operator (id, name, role, state, token_digest, expires_at)
  values ($1, $2, $3, 'ACTIVE', $4, now() + make_interval(days => $5))
  on conflict do nothing returning ${columnsOf(Operator)}`;
/** Writes an operator without a way in, unless one that has not ended has the name. $1 id, $2 name, $3 role. */
export const ADD_INVITED = statement(Operator.columns)`
  insert into operator (id, name, role, state) values ($1, $2, $3, 'INVITED')
  on conflict do nothing returning ${columnsOf(Operator)}`;
/** Gives the operator $1 the role $2. */
export const SET_ROLE = statement(Operator.columns)`
  update operator set role = $2 where id = $1 returning ${columnsOf(Operator)}`;
/** Gives the operator $1 the token with the digest $2 for $3 days. The earlier token ends. */
export const RENEW_TOKEN = statement(Operator.columns)`
  update operator set token_digest = $2, expires_at = now() + make_interval(days => $3) where id = $1
  returning ${columnsOf(Operator)}`;

/** The sign-in of an operator. The row exists while the session is open. */
export const OperatorSession = entity('operator_session', {
  id: column.key(),
  operatorId: column.text(),
  digest: column.bytes(),
  /** The browser, to recognise the session by. */
  userAgent: nullable(column.text()),
  createdAt: column.now(),
  /** The last use, with the precision of a minute. */
  usedAt: column.now(),
  /** When it ends, however much it is used. */
  expiresAt: column.timestamp(),
});
export type OperatorSession = RowOf<typeof OperatorSession>;

/** A session ends after so many hours, and after so many minutes without a use. */
const SESSION_HOURS = 12;
const IDLE_MINUTES = 30;
const IS_OPEN = `(session.expires_at > now() and session.used_at > now() - interval '${IDLE_MINUTES} minutes')`;

/** Opens a session. $1 id, $2 operator, $3 digest of its token, $4 user agent. */
export const OPEN_SESSION = statement(OperatorSession.columns)`
  insert into operator_session (id, operator_id, digest, user_agent, expires_at)
  values ($1, $2, $3, $4, now() + interval '${SESSION_HOURS} hours') returning ${columnsOf(OperatorSession)}`;
/** The operator and the session whose token has the digest $1. Notes the use of an open one. */
export const USE_SESSION = statement({
  ...Operator.columns,
  sessionId: column.key(),
  sessionExpiresAt: column.timestamp(),
  isOver: column.boolean(),
})`
  with used as (
    update operator_session as session set used_at = now()
    where digest = $1 and ${IS_OPEN} and used_at < now() - interval '1 minute')
  select ${columnsOf(Operator, 'operator')}, session.id as session_id, session.expires_at as session_expires_at,
      not ${IS_OPEN} as is_over
    from operator_session as session join operator on operator.id = operator_id where session.digest = $1`;
/** The session $1, while it is open. */
export const FIND_OPEN_SESSION = statement({ id: column.key() })`
  select id from operator_session as session where id = $1 and ${IS_OPEN}`;
/** The open sessions of the operator $1 (null: all), the newest first. */
export const LIST_SESSIONS = statement({ ...OperatorSession.columns, name: column.text() })`
  select ${columnsOf(OperatorSession, 'session')}, name
    from operator_session as session join operator on operator.id = operator_id
    where ($1::text is null or operator_id = $1) and ${IS_OPEN} order by session.id desc`;
/** Deletes the sessions that are over. */
export const DELETE_OVER_SESSIONS = statement({ id: column.key() })`
  delete from operator_session as session where not ${IS_OPEN} returning id`;
