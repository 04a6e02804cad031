/** The audit log: the actor, the act and its time. It has no column for an address, a body or a credential. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';

/** The actor: a credential of a customer, the operator, or the system. */
export interface Actor {
  type: 'api_key' | 'access_token' | 'operator' | 'system';
  id: string | null;
  name: string | null;
  /** The request of the actor. */
  requestId: string | null;
}
/** The account that holds the operator's acts, except acts on a customer's account. */
export const OPERATOR_ACCOUNT = 'operator';
export const SYSTEM: Actor = { type: 'system', id: null, name: null, requestId: null };

export const AuditEntry = entity('audit_entry', {
  id: column.key(),
  accountId: column.text(),
  action: column.text(),
  actorType: column.text(),
  actorId: nullable(column.text()),
  actorName: nullable(column.text()),
  /** The changed resource. `api.request` has one if the operator read or changed something of a customer. */
  resourceType: nullable(column.text()),
  resourceId: nullable(column.text()),
  requestId: nullable(column.text()),
  /** The method, the template of the path, and the status of the response. Only `api.request` has them. */
  method: nullable(column.text()),
  path: nullable(column.text()),
  status: nullable(column.int()),
  /** How often it happened since the entry before. Only security events and refused requests count more than one. */
  count: defaulting(column.int(), 1),
  createdAt: column.now(),
});
export type AuditEntry = RowOf<typeof AuditEntry>;

/** The action of recorded requests. All other actions are types of events. */
export const API_REQUEST = 'api.request';
/** Days until the service deletes entries. */
export const AUDIT_DAYS = 90;

const entriesIn = (range: string, order: string) =>
  statement(AuditEntry.columns, { replans: true })`
  select ${columnsOf(AuditEntry)} from audit_entry
      where account_id = $1 and ${range}
        and ($4::timestamptz is null or created_at >= $4) and ($5::timestamptz is null or created_at < $5)
      order by ${order} limit $6`;
/** The entries of the account $1, newest first. $2 and $3 the range of ids, $4 and $5 the range of times, $6 limit. */
export const LIST_AUDIT_ENTRIES = entriesIn('id >= $2 and id < $3', 'id desc');
/** The same for the action $7. Only the index by action fits; the other one would read all entries between two of them. */
export const LIST_ENTRIES_OF_ACTION = entriesIn(
  '(action, id) >= ($7, $2) and (action, id) < ($7, $3)',
  'action desc, id desc',
);
/**
 * The same for several actions $6. $1 and $2 the range of ids, $3 and $4 the range of times, $5 limit. It reads one page of
 * each action. Each kind of logs has an index by action.
 * @param actor the actor as a parameter; then only the index by actor and action fits
 */
const entriesOfActions = (logs: string, actor?: string) => {
  const [column, value] = actor ? ['actor_id, ', `${actor}, `] : ['', ''];
  const key = `${column}action, id`;
  return statement(AuditEntry.columns, { replans: true })`
  select ${columnsOf(AuditEntry, 'entry')} from unnest($6::text[]) as wanted (action) cross join lateral (
    select * from audit_entry
      where ${logs} and (${key}) >= (${value}wanted.action, $1) and (${key}) < (${value}wanted.action, $2)
        and ($3::timestamptz is null or created_at >= $3) and ($4::timestamptz is null or created_at < $4)
      order by ${actor ? 'actor_id desc, ' : ''}audit_entry.action desc, id desc limit $5::int) as entry
  order by entry.id desc limit $5::int`;
};
/** In the log of the account $7. */
export const LIST_ENTRIES_OF_ACTIONS = entriesOfActions('account_id = $7');
/** In the log of the operator, and the acts of operators in the logs of customers. */
export const LIST_ENTRIES_OF_OPERATORS = entriesOfActions(
  `(account_id = '${OPERATOR_ACCOUNT}' or actor_type = 'operator')`,
);
/** Of the operator $7 in all logs, or in the log of the account $8. */
export const LIST_ENTRIES_OF_OPERATOR = entriesOfActions(
  `actor_type = 'operator' and ($8::text is null or account_id = $8)`,
  '$7',
);
/** An entry of the last ten minutes: $1 account, $2 action, $3 resource, $4 the bound of its id. */
export const FIND_RECENT_ENTRY = statement({ id: column.key() })`
  select id from audit_entry where account_id = $1 and action = $2 and resource_id = $3 and id >= $4
    and created_at > now() - interval '10 minutes' limit 1`;
/** How many entries of the last hour the account $1 has with one of the actions $2. $3 is the bound of their ids. */
export const COUNT_RECENT_ENTRIES = statement({ entries: column.int() })`
  select count(*)::int as entries from audit_entry
    where account_id = $1 and action = any($2::text[]) and id >= $3 and created_at > now() - interval '1 hour'`;
/** Seconds until the $3th newest act $2 of the account $1 is an hour old. The acts of the system do not count. */
export const SECONDS_TO_AN_HOUR_OLD = statement({ seconds: column.real() })`
  select extract(epoch from created_at + interval '1 hour' - now())::float8 as seconds from audit_entry
  where account_id = $1 and action = $2 and actor_type <> 'system' order by action desc, id desc offset $3::int - 1 limit 1`;
/** The same for sessions whose sources are like $2, or of no client (null). $4 is the bound of the ids. */
export const SECONDS_TO_AN_HOUR_OLD_SESSION = statement({ seconds: column.real() })`
  select extract(epoch from created_at + interval '1 hour' - now())::float8 as seconds from audit_entry
  where account_id = $1 and action = 'session.created' and id >= $4 and coalesce(actor_name, '') like coalesce($2::text, '%')
    and ($2::text is not null or coalesce(actor_name, '') not like 'oauth:%')
  order by action desc, id desc offset $3::int - 1 limit 1`;
/** Inserts entries with the action $1; the other parameters are arrays with one element for each entry. */
export const INSERT_REQUESTS = statement({})`
  insert into audit_entry (action, created_at, id, account_id, actor_type, actor_id, actor_name, request_id, method, path, status,
      resource_type, resource_id, count)
    select $1, now() - age_ms * interval '1 millisecond', id, account_id, actor_type, actor_id, actor_name, request_id, method,
        path, status, resource_type, resource_id, count
      from unnest($2::text[], $3::float8[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
        $11::int[], $12::text[], $13::text[], $14::int[]) as given (id, age_ms, account_id, actor_type, actor_id, actor_name, request_id,
        method, path, status, resource_type, resource_id, count)
    on conflict (id) do nothing`;
/**
 * Deletes entries older than `AUDIT_DAYS` from the beginning of each hash chain, at most $1 of an account. The last deleted
 * link stays as the anchor of its chain. The role of the service may delete entries in no other way.
 */
export const DELETE_OLD_ENTRIES = statement({ deleted: column.int() })`select delete_old_audit($1) as deleted`;
