/** Statements by which provisioning reads one server, and locks it with the account before it. $1 order number. */
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { lockServerSql, Server } from './server.ts';

/** Reads the server. */
export const READ_SERVER = statement(Server.columns)`
  select ${columnsOf(Server)} from server where order_number = $1`;
/** Locks the server, and reads it. */
export const LOCK_SERVER = statement(Server.columns)`${lockServerSql(columnsOf(Server))}`;
/** Locks and reads the server, if it still waits for its payment. */
export const LOCK_PENDING_SERVER = statement(Server.columns)`${lockServerSql(columnsOf(Server), `status = 'PENDING'`)}`;
