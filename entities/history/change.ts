/** The last change of a thing, with its actor. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable } from '../database/table.ts';

/**
 * The last event of the account $1, the subject $2 and the type $3. The transaction of the change wrote the audit entry of the
 * same time, with a later id.
 */
export const LAST_CHANGE = statement({
  actorName: nullable(column.text()),
  createdAt: column.timestamp(),
  data: column.json<Record<string, unknown>>(),
})`
  select entry.actor_name, entry.created_at, event.data from event cross join lateral (
    select actor_name, created_at from audit_entry
      where account_id = event.account_id and (action, id) >= (event.type, 'aud_' || substr(event.id, 5))
        and action = event.type and resource_id = event.subject and created_at = event.created_at
      order by action, id limit 1) as entry
  where event.account_id = $1 and subject = $2 and type = $3 order by event.id desc limit 1`;
