/** Servers with their latest event, for the callers that watch them. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { EVENT_TYPES } from '../history/event.ts';
import { SHOWN_COLUMNS, SHOWN_SERVER } from './server.ts';

/** The server $2, or with null all that are not deleted. $1 is the account, or null for all accounts. */
export const FIND_LATEST_EVENTS = statement(
  { ...SHOWN_SERVER, type: column.oneOf(...EVENT_TYPES), at: column.now() },
  { replans: true },
)`
  select ${SHOWN_COLUMNS}, latest.type, latest.created_at as at
    from server cross join lateral (
      select type, created_at from event where event.account_id = server.account_id and event.subject = server.order_number order by id desc limit 1) latest
    where ($1::text is null or server.account_id = $1) and (server.order_number = $2 or ($2 is null and server.status <> 'DELETED'))
    order by server.id limit 1000`;
