/** Statements by which requests read servers of an account. The account null stands for all accounts. */
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { lockServerSql, Server, SHOWN_COLUMNS, SHOWN_SERVER } from './server.ts';

const IS_IT = `order_number = $1 and ($2::text is null or account_id = $2) and status <> 'DELETED'`;

/** One server. $1 order number, $2 account. */
export const FIND_SERVER = statement(SHOWN_SERVER)`select ${SHOWN_COLUMNS} from server where ${IS_IT}`;

/** Locks one server with its account. $1 order number, $2 account. */
export const LOCK_OWN_SERVER = statement(Server.columns)`${lockServerSql(columnsOf(Server), IS_IT)}`;

const newest = (after: string) => statement(SHOWN_SERVER)`
  select ${SHOWN_COLUMNS} from server where status <> 'DELETED' and account_id = $2 ${after} order by id desc limit $1::int`;
/** The newest $1 servers of the account $2, without deleted ones. Most lists have no filter, and need no plan of their own. */
export const LIST_NEWEST_SERVERS = newest('');
/** The same after the id $3. */
export const LIST_NEXT_SERVERS = newest('and id < $3');

/**
 * Lists $1 servers, without deleted ones. $2 account, $3 the id after which they begin, $4 statuses, $5 regions,
 * $6 hostname; null for all. $7 labels that a server must have, $8 labels that it must not have. $9 and $10 when they were
 * ordered; null: at any time.
 */
const listed = (after: string, order: string) => statement(SHOWN_SERVER, { replans: true })`
  select ${SHOWN_COLUMNS} from server
  where status <> 'DELETED' and ($2::text is null or account_id = $2) and ($3::text is null or ${after})
    and ($4::text[] is null or status = any($4)) and ($5::text[] is null or region = any($5))
    and ($6::text is null or hostname = $6) and labels @> all($7::jsonb[]) and not labels @> any($8::jsonb[])
    and ($9::timestamptz is null or created_at >= $9) and ($10::timestamptz is null or created_at < $10)
  order by ${order} limit $1::int`;
/** The newest servers. */
export const LIST_SERVERS = listed('id < $3', 'id desc');
/** The oldest servers. */
export const LIST_OLDEST_SERVERS = listed('id > $3', 'id');

/** Locks the servers of the account $1 that are not gone, or about to go. */
export const LOCK_SERVERS_OF_ACCOUNT = statement({ orderNumber: Server.columns.orderNumber })`
  select order_number from server where account_id = $1 and status not in ('DELETING', 'DELETED')
  order by order_number for update`;
