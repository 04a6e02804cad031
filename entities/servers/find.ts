/** Statements by which requests read servers of an account. The account null stands for all accounts. */
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { lockServerSql, Server, SHOWN_COLUMNS, SHOWN_SERVER } from './server.ts';

const IS_IT = `order_number = $1 and ($2::text is null or account_id = $2) and status <> 'DELETED'`;

/** One server. $1 order number, $2 account. */
export const FIND_SERVER = statement(SHOWN_SERVER)`select ${SHOWN_COLUMNS} from server where ${IS_IT}`;

/** Locks one server with its account. $1 order number, $2 account. */
export const LOCK_OWN_SERVER = statement(Server.columns)`${lockServerSql(columnsOf(Server), IS_IT)}`;

/**
 * The newest $1 servers, without deleted ones. $2 account, $3 the id before which they begin, $4 statuses, $5 region,
 * $6 hostname; null for all. $7 labels that a server must have, $8 labels that it must not have.
 */
export const LIST_SERVERS = statement(SHOWN_SERVER)`
  select ${SHOWN_COLUMNS} from server
  where status <> 'DELETED' and ($2::text is null or account_id = $2) and ($3::text is null or id < $3)
    and ($4::text[] is null or status = any($4)) and ($5::text is null or region = $5)
    and ($6::text is null or hostname = $6) and labels @> all($7::jsonb[]) and not labels @> any($8::jsonb[])
  order by id desc limit $1::int`;

/** Locks the servers of the account $1 that are not gone, or about to go. */
export const LOCK_SERVERS_OF_ACCOUNT = statement({ orderNumber: Server.columns.orderNumber })`
  select order_number from server where account_id = $1 and status not in ('DELETING', 'DELETED')
  order by order_number for update`;
