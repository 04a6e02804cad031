/** Statements by which orders and rebuilds read their facts, that order a server, and that mark orders without proof. */
import { isOpenCredentialSql } from '../accounts/credential.ts';
import { IS_USABLE_SSH_KEY } from '../accounts/ssh-key.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable, type Row } from '../database/table.ts';
import { recordSql } from '../history/record.ts';
import { holdSql } from '../payments/ledger.ts';
import { START_TASK_PARAMETERS, startTaskSql } from '../tasks/start.ts';
import { WEBHOOK_IDS_SQL } from '../webhooks/outbox.ts';
import { claimSql } from './capacity.ts';
import { hasImageSql, isOnEngineSql } from './engine.ts';
import { freeSql } from './host.ts';
import { addressRoomSql, JOIN_ROOM_SQL } from './ip-address.ts';
import { KEEPS_HOLD_SQL, Server } from './server.ts';

/** Counts the servers of the account $1. */
const SERVERS_SQL = `select count(*)::int from server where account_id = $1 and status <> 'DELETED'`;

/** The SSH keys of the account $1 that the condition selects, as JSON. */
const keysSql = (condition: string): string => `(
  select coalesce(json_agg(json_build_object('id', id, 'publicKey', public_key) order by id), '[]')
  from ssh_key where account_id = $1 and ${IS_USABLE_SSH_KEY} and ${condition})`;
const keys = column.json<{ id: string; publicKey: string }[]>();

const FACTS = {
  balanceMicros: column.bigint(),
  owedMicros: column.bigint(),
  servers: column.int(),
  /** Prices are text, because JSON cannot hold 64-bit integers. */
  tier: nullable(column.json<{ kind: 'vps' | 'dedicated'; priceMonthMicros: string; setupFeeMicros: string }>()),
  /** The bastions that offer the tier, and how many machines can be ordered there. */
  regions: column.json<{ code: string; free: number }[]>(),
  bastions: column.textArray(),
  imageOffered: column.boolean(),
  keys,
};
export type OrderFacts = Row<typeof FACTS>;
/**
 * The facts that an order depends on. $1 account, $2 service code, $3 image, $4 ids of SSH keys, $5 region; null for all.
 * $6 whether to count servers and stock.
 */
export const READ_ORDER_FACTS = statement(FACTS)`
  with ${addressRoomSql({ where: '($5::text is null or bastion.code = $5)' })}
  select
    coalesce((select available_micros from balance where account_id = $1), 0) as balance_micros,
    coalesce((select owed_micros from balance where account_id = $1), 0) as owed_micros,
    case when $6::boolean then (${SERVERS_SQL}) else 0 end as servers,
    (select json_build_object('kind', kind, 'priceMonthMicros', price_month_micros::text, 'setupFeeMicros', setup_fee_micros::text)
      from catalog_item where code = $2 and kind in ('vps', 'dedicated') and offered) as tier,
    case when $6::boolean then (select coalesce(json_agg(json_build_object('code', bastion.code, 'free', least(${freeSql({ image: '$3' })}, room.free)) order by bastion.position), '[]')
      from stock join catalog_item tier on tier.code = stock.service_code
        join catalog_item bastion on bastion.code = stock.region_code and bastion.offered
        ${JOIN_ROOM_SQL}
      where stock.service_code = $2 and ($5::text is null or stock.region_code = $5)) else '[]' end as regions,
    (select coalesce(array_agg(code), '{}') from catalog_item where kind = 'bastion' and offered) as bastions,
    exists (select from catalog_item where code = $3 and kind = 'image' and offered) and ${isOnEngineSql('$3')} as image_offered,
    ${keysSql('($4::text[] is null or id = any($4))')} as keys`;

/**
 * The facts that a rebuild depends on. Without a new image it may keep one that is no longer offered. $1 account, $2 the new
 * image, or null, $3 ids of SSH keys, $4 order number.
 */
export const READ_REBUILD_FACTS = statement({ imageOffered: column.boolean(), hasImage: column.boolean(), keys })`
  select
    $2::text is null or exists (select from catalog_item where code = $2 and kind = 'image' and offered) as image_offered,
    not exists (
      select from server join catalog_item tier on tier.code = service_code
        join engine on engine.name = server.engine
          or (server.engine is null and engine.connection is null and server.kind = any(engine.kinds))
      where order_number = $4 and not ${hasImageSql('coalesce($2, server.os)')}) as has_image,
    ${keysSql('id = any($3::text[])')} as keys`;

/**
 * Writes the order, its event, its audit entry and its deliveries to webhooks. $1 account, $2 price, $3 id of the hold,
 * $4 to $18 the server: see the columns.
 * @param head CTEs: `paid` has the account, unless it cannot pay; `room` has the claimed capacity
 * @param starts CTEs that start the task
 * @param first the number of the first of `recordParameters`
 */
const orderSql = (head: string, starts: string, first: number): string => `
  with ${head},
    ordered as (
      insert into server (account_id, order_number, service_code, id, kind, status, hostname, region, os, ssh_key_ids, ssh_public_keys,
        user_data, root_password, labels, auto_renew, price_month_micros, setup_fee_micros, ipv4, ipv6, ipv6_prefix, host, engine)
      select account_id, $4, $5, $6, $7, 'PENDING', $8, $9, $10, $11::text[], $12::text[],
        $13::bytea, $14::bytea, $15::jsonb, $16::boolean, $17::bigint, $18::bigint, ipv4, ipv6, ipv6_prefix, host, engine
      from paid cross join room
      returning ${columnsOf(Server)}, order_number as subject),
    ${starts}
    ${recordSql('ordered', first, Server)}
  select ${columnsOf(Server, 'ordered')}, ${WEBHOOK_IDS_SQL} from ordered`;
const ORDERED = { ...Server.columns, webhookIds: column.textArray() };

/** The SSH keys $11 still stand: the end of a credential may have deleted one since the order read them. */
const HAS_KEYS = `not exists (select from unnest($11::text[]) wanted (id) where not exists (
  select from ssh_key where ssh_key.id = wanted.id and ssh_key.account_id = $1 and ${IS_USABLE_SSH_KEY}))`;
const IS_UNSUSPENDED = 'not exists (select from account where account.id = $1 and suspended_at is not null)';
/** $19 the number of servers that the account may have, $20 and $21 the `Spender`. $22 the credential that must be open, or null. */
const [TASK, AFTER_TASK] = [23, 23 + START_TASK_PARAMETERS];
/**
 * Holds the price, claims capacity, writes the order and starts its task. No row: the account cannot pay, is
 * suspended, has too many servers, or finds no capacity. Or the credential or an SSH key has ended.
 */
export const ORDER_SERVER = statement(ORDERED)`
  ${orderSql(
    `${claimSql({ region: '$9', serviceCode: '$5', orderNumber: '$4', generation: '1', image: '$10' })},
  ${holdSql([20, 21], `(${SERVERS_SQL}) < $19::int and ${IS_UNSUSPENDED} and ${HAS_KEYS} and ($22::text is null or ${isOpenCredentialSql('$22')})`)}`,
    `${startTaskSql('ordered', TASK, 'host')},`,
    AFTER_TASK,
  )}`;
/** Writes an order whose payment is still to come. It holds no money and claims no capacity. No row: the account is suspended. */
export const ORDER_UNPAID_SERVER = statement(ORDERED)`
  ${orderSql(
    `paid as (select $1::text as account_id, $2::bigint, $3::text where ${IS_UNSUSPENDED} and ${HAS_KEYS}),
  room as (select null::inet as ipv4, null::inet as ipv6, null::text as ipv6_prefix, null::text as host, null::text as engine)`,
    '',
    19,
  )}`;

/**
 * Marks the order $2 of the account $1, whose machine ran for $3 seconds. Returns its begun hours, and whether another order
 * of the last day was free.
 */
export const MARK_UNPROVEN = statement({ hours: column.int(), repeated: column.boolean() })`
  with marked as (update server set unproven_at = now() where order_number = $2)
  select greatest(1, ceil($3::float8 / 3600))::int as hours,
    exists (select from server where account_id = $1 and unproven_at > now() - interval '1 day') as repeated`;
/**
 * The begun hours since the deleted order $1, and whether it follows another such order within a day. The time of the
 * deletion counts, because a wipe can take days. No row: the order has kept no hold, or its failure has charged it.
 */
export const COUNT_KEPT_HOURS = statement({ hours: column.int(), repeated: column.boolean() })`
  select greatest(1, ceil(extract(epoch from now() - created_at) / 3600))::int as hours,
    exists (
      select from server earlier
      where earlier.account_id = server.account_id and earlier.order_number <> server.order_number
        and earlier.unproven_at > server.unproven_at - interval '1 day'
        and earlier.unproven_at <= server.unproven_at) as repeated
  from server where order_number = $1 and failure_code is null and ${KEEPS_HOLD_SQL}`;
