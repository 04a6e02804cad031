/** Statements by which provisioning reads one server, and locks it with the account before it. $1 order number. */
import { IS_LIMITED_SQL } from '../accounts/abuse-case.ts';
import type { DedicatedDetails, VpsDetails } from '../catalog.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { lockServerSql, Server } from './server.ts';

/** Reads the server. `isEngineStopped`: workers leave its machine alone, because the operator has restored the database. */
export const READ_SERVER = statement({ ...Server.columns, isEngineStopped: column.boolean() })`
  select ${columnsOf(Server)}, exists (
      select from brake join engine on engine.name = brake.driver
      where stops_orders and (engine.name = server.engine
        or server.engine is null and engine.connection is null and server.kind = any(engine.kinds))) as is_engine_stopped
    from server where order_number = $1`;
/** Locks the server, and reads it. */
export const LOCK_SERVER = statement(Server.columns)`${lockServerSql(columnsOf(Server))}`;
/** Locks and reads the server, if it still waits for its payment. */
export const LOCK_PENDING_SERVER = statement(Server.columns)`${lockServerSql(columnsOf(Server), `status = 'PENDING'`)}`;

/** The network of an address that a server holds. */
interface Network {
  family: 'IPV4' | 'IPV6';
  prefixLength: number | null;
  gateway: string | null;
}
/** Reads the specification of its machine, beside the columns of the server. $2 tier. */
export const READ_SPEC = statement({
  details: column.json<VpsDetails | DedicatedDetails>(),
  isLimited: column.boolean(),
  networks: column.json<Network[]>(),
})`
  select details, ${IS_LIMITED_SQL} as is_limited, (
      select coalesce(jsonb_agg(jsonb_build_object('family', family, 'prefixLength', prefix_length, 'gateway', host(gateway))), '[]')
      from address where held_by = order_number) as networks
    from server join catalog_item on code = $2 and catalog_item.kind in ('vps', 'dedicated') where order_number = $1`;
