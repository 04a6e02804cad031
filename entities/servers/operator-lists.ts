/** Statements by which the operator reads findings, deployments and troubles, and learns whose machines they are. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { Deployment } from './deployment.ts';
import { Finding } from './finding.ts';
import { Server } from './server.ts';

/** The newest $1 open findings. */
export const LIST_OPEN_FINDINGS = statement(Finding.columns)`
  select ${columnsOf(Finding)} from finding where resolved_at is null order by first_seen_at desc, id desc limit $1::int`;
/** The $1 deployments that are unchanged for the longest time. */
export const LIST_OLDEST_DEPLOYMENTS = statement(Deployment.columns)`
  select ${columnsOf(Deployment)} from deployment order by updated_at, id limit $1::int`;
/** The server that has a machine, unless it is gone. $1 order number, $2 generation. */
export const FIND_MACHINE_OWNER = statement({ orderNumber: column.text() })`
  select order_number from server where order_number = $1 and generation = $2 and status <> 'DELETED'
    and (status <> 'FAILED' or ipv4 is not null)`;

const { orderNumber, kind, status, region, host } = Server.columns;
const TROUBLE = { orderNumber, kind, status, region, host, trouble: column.text(), troubleAt: column.timestamp() };
/** A server whose engine has failed, and the last time. */
export type Trouble = {
  orderNumber: string;
  kind: Server['kind'];
  status: Server['status'];
  region: string;
  host: string | null;
  trouble: string;
  troubleAt: Date;
};

/** Notes the words $2 of the engine about the machine of the server $1. */
export const NOTE_TROUBLE = statement({})`
  update server set trouble = $2, trouble_at = now() where order_number = $1`;

/** The $1 latest troubles. */
export const LIST_TROUBLES = statement(TROUBLE)`
  select order_number, kind, status, region, host, trouble, trouble_at from server
  where trouble_at is not null order by trouble_at desc, id desc limit $1::int`;
