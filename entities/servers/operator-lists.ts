/** Statements by which the operator reads findings and deployments, and learns whose machines they are. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { Deployment } from './deployment.ts';
import { Finding } from './finding.ts';

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
