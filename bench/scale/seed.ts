/**
 * Fills the tables of a database by SQL until it has a number of servers. A server has ten transfers and five events. An account
 * has ten servers, and every twentieth server brings a webhook. One account has 5,000 servers at each size. The books
 * balance, and the audit log is empty.
 */
import type { Database } from '../../entities/database/database.ts';
import { newWebhookSecret } from '../../provisioning/index.ts';

/** The servers of the first account. The others have ten. */
export const LARGE_ACCOUNT_SERVERS = 5_000;
/** Tables whose indexes are made anew after the rows. */
const LARGE_TABLES = ['server', 'transfer', 'event', 'webhook_delivery', 'top_up', 'payment'];

/** The id of a row that was made at a time, as an expression. Ids sort by time. */
const id = (prefix: string, time: string, number: string) =>
  `'${prefix}_' || pg_temp.time_of(${time}) || lpad((${number})::text, 16, '0')`;
/** The id of an account by its number. */
export const accountId = (number: string) => `'acct_' || lpad((${number})::text, 26, '0')`;
/** The number of the account of a server. */
const ACCOUNT = `(case when n <= ${LARGE_ACCOUNT_SERVERS} then 1 else (n - 1) / 10 + 1 end)`;
/** Order numbers are random, so a row and its neighbours have distant ones. */
const order = (kind: string, number: string) =>
  `'${kind}-' || lpad(((${number})::bigint * 73687877 % 10000000000)::text, 10, '0')`;
/** Rows of a stage are as old as three years, in their order. */
const CREATED = `now() - interval '3 years' * ($2::int - n + 1)::float8 / ($2 - $1 + 1)`;
const DECEASED = 'n % 10 = 9';

const TIME_OF = `
  create or replace function pg_temp.time_of(at timestamptz) returns text immutable language sql return (
    select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((floor(extract(epoch from at) * 1000)::bigint >> shift) & 31)::int + 1, 1), '')
    from generate_series(45, 0, -5) as shift)`;

/** Each statement adds the rows of the servers $1 to $2. */
const STATEMENTS = [
  `insert into account (id, kind, email, created_at)
    select ${accountId('n')}, 'PERSON', 'owner' || n || '@example.org', now() - interval '3 years'
    from generate_series(($1::int - 1) / 10 + 1, $2::int / 10) n`,
  `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, ipv4, reverse_dns,
      labels, auto_renew, price_month_micros, setup_fee_micros, paid_until, suspended_at, suspended_from, created_at, updated_at)
    select ${id('srv', 'created', 'n')}, ${accountId(ACCOUNT)}, ${order('SRV', 'n')}, 'VPS', status, 'web-' || n || '.example.org',
      code, (array['zrh', 'ams', 'kef', 'buh'])[n % 4 + 1], 'debian-13', ip,
      case when n % 2 = 0 then jsonb_build_array(jsonb_build_object('ip', host(ip), 'ptr', 'web-' || n || '.example.org')) else '[]' end,
      '{"env": "prod"}', status <> 'SUSPENDED', price_month_micros, 0,
      now() + interval '1 hour' * (1 + n % 719) - case when ${DECEASED} or status = 'SUSPENDED' then interval '31 days' else interval '0' end,
      case status when 'SUSPENDED' then now() - interval '1 day' end, case status when 'SUSPENDED' then 'RUNNING' end, created, created
    from generate_series($1::int, $2::int) n
      cross join lateral (select ${CREATED} as created, '10.0.0.0'::inet + n as ip,
        case when ${DECEASED} then 'DELETED' when n % 200 = 100 then 'SUSPENDED' when n % 20 = 10 then 'STOPPED' else 'RUNNING' end as status) as own
      join catalog_item on code = 'vps-' || (1 + n % 5)`,
  // An order, its delivery, and eight renewals.
  `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, order_number, service_code, description,
      period_from, period_to, created_at)
    select ${id('xfr', 'at', 'n * 10 + k')}, account_id, case k when 0 then 'hold' when 1 then 'capture' else 'renewal' end,
      case k when 1 then 'held:' else 'available:' end || account_id, case k when 0 then 'held:' || account_id else 'revenue' end,
      price_month_micros,
      case k when 0 then 'hold:' || order_number when 1 then 'capture:' || order_number else 'renewal:' || order_number || ':' || k end,
      order_number, service_code, 'A month of ' || service_code, case when k > 0 then at end,
      case when k = 9 then paid_until when k > 0 then at + interval '30 days' end, at
    from generate_series(0, 9) k cross join generate_series($1::int, $2::int) n
      join server on server.order_number = ${order('SRV', 'n')}
      cross join lateral (select date_trunc('milliseconds', created_at + greatest(0, k - 1) / 9.0 * (now() - created_at)) as at) as own
    order by at`,
  `create temporary table paid as
    select account_id, sum(price_month_micros)::bigint * 12 as micros, substr(account_id, 6)::int as n from server
    where created_at < now() and not exists (select from balance where balance.account_id = server.account_id) group by 1`,
  `insert into top_up (id, account_id, order_number, status, mode, amount_micros, bonus_micros, crypto, network, amount_crypto,
      received_crypto, rate_micros, wallet_address, confirmations, confirmations_required, credited_micros, created_at, expires_at, confirmed_at)
    select ${id('top', 'at', 'n * 10 + k')}, account_id, ${order('TOP', 'n * 10 + k')}, case k when 0 then 'CONFIRMED' else 'EXPIRED' end,
      'CRYPTO', micros, 0, 'BTC', 'bitcoin', '1', case k when 0 then '1' else '0' end, micros, 'address ' || n * 10 + k, 0, 2,
      case k when 0 then micros else 0 end, at, at + interval '30 minutes', case k when 0 then at end
    from paid cross join generate_series(0, 4) k cross join lateral (select now() - interval '1 day' * (1095 - k) as at) as own`,
  `insert into payment (id, network, tx_id, position, coin, address, account_id, order_number, units, status, height, block_hash,
      confirmations, seen_at, mined_at, quoted_units, rate_micros, credited_micros, credited_at, mode, external_key, final_at, created_at)
    select ${id('pay', 'at', 'n')}, 'bitcoin', md5('tx' || n), 0, 'BTC', 'address ' || n * 10, account_id, ${order('TOP', 'n * 10')},
      '100000000', 'FINAL', n, md5('block' || n), 6, at, at, '100000000', micros, micros, at, 'CRYPTO', 'pay:bitcoin:' || md5('tx' || n) || ':0', at, at
    from paid cross join lateral (select now() - interval '1095 days' as at) as own`,
  `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, order_number, description, created_at)
    select ${id('xfr', 'created_at', 'n * 10 + 9')}, account_id, 'topup', 'gateway:bitcoin', 'available:' || account_id, micros,
      external_key, order_number, 'Top-up in BTC', created_at from paid join payment using (account_id)`,
  `insert into usage_day (account_id, day, total_micros, topped_up_micros, spent_micros)
    select account_id, (created_at at time zone 'UTC')::date, sum(case kind when 'topup' then amount_micros else -amount_micros end),
      sum(case kind when 'topup' then amount_micros else 0 end), sum(case kind when 'topup' then 0 else amount_micros end)
    from transfer join paid using (account_id) where kind <> 'capture' group by 1, 2`,
  `insert into balance (account_id, available_micros)
    select account.id, coalesce(micros / 4, 0) from account left join paid on account_id = account.id
    where not exists (select from balance where account_id = account.id)`,
  `drop table paid`,
  `insert into event (id, account_id, type, subject, data, created_at)
    select ${id('evt', 'at', 'n * 10 + k')}, account_id,
      (array['server.created', 'server.provisioning', 'server.running', 'server.renewed', 'server.renewed'])[k + 1], order_number, '{}', at
    from generate_series(0, 4) k cross join generate_series($1::int, $2::int) n join server on server.order_number = ${order('SRV', 'n')}
      cross join lateral (select date_trunc('milliseconds', created_at + k / 9.0 * (now() - created_at)) as at) as own order by at`,
  `insert into webhook (id, account_id, url, event_filter, secret, created_at)
    select ${id('whk', 'created_at', 'n')}, account_id, 'https://receiver.example.org/' || n, array['server.*'], $3::bytea, created_at
    from generate_series($1::int, $2::int) n join server on server.order_number = ${order('SRV', 'n')} where n % 20 = 0`,
  // Delivered within the last days, as retention keeps them.
  `insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, status, attempts, response_status, duration_ms,
      first_attempt_at, created_at)
    select ${id('dlv', 'at', 'n * 10 + k')}, account_id, webhook.id, ${id('evt', 'at', 'n * 10 + k')}, 'server.renewed', 'SUCCEEDED', 1, 200,
      100, at, at
    from generate_series(0, 9) k cross join generate_series($1::int, $2::int) n
      join webhook on url = 'https://receiver.example.org/' || n cross join lateral (select now() - interval '1 day' * (k + 1) as at) as own
    where n % 20 = 0`,
  `insert into webhook_snapshot (event_id, snapshot) select event_id, '{"id": "srv"}' from webhook_delivery on conflict do nothing`,
  // Work that is not due: a machine changes, or an order waits.
  `insert into task (id, lane, process, subject, account_id, step, run_at)
    select ${id('task', 'created_at', 'n')}, 'servers', 'servers', 'waiting ' || n, account_id, 'start', now() + interval '1 hour'
    from generate_series($1::int, $2::int) n join server on server.order_number = ${order('SRV', 'n')} where n % 100 = 0`,
  `insert into meter (order_number, epoch, read_at, sent_bytes, received_bytes, port_mbps, month, used_bytes)
    select order_number, '1', now(), n, n, 1000, to_char(now() at time zone 'UTC', 'YYYY-MM'), n
    from generate_series($1::int, $2::int) n join server on server.order_number = ${order('SRV', 'n')} where not (${DECEASED})`,
  `insert into reverse_dns_told (ip, ptr, wanted, order_number)
    select '10.0.0.0'::inet + n, name, name, ${order('SRV', 'n')}
    from generate_series($1::int, $2::int) n cross join lateral (select 'web-' || n || '.example.org' as name) as own
    where n % 2 = 0 and not (${DECEASED})`,
  `insert into session (id, account_id, family_id, source, scope, access_digest, expires_at, refresh_expires_at, family_expires_at, created_at)
    select ${id('tok', `now() - interval '20 days'`, 'n')}, ${accountId('n / 10')}, 'family ' || n, 'login', 'full', sha256(n::text::bytea),
      now() + interval '1 day', now() + interval '1 day', now() + interval '1 day', now() - interval '20 days'
    from generate_series($1::int, $2::int) n where n % 10 = 0`,
  `insert into message (id, account_id, sender, title, body, created_at, read_at)
    select ${id('msg', `now() - interval '20 days'`, 'n')}, ${accountId('n / 10')}, 'CUSTOMER', 'Hello', 'A question', now(), now()
    from generate_series($1::int, $2::int) n where n % 10 = 0`,
];

/** A few rows of the states that lists look for. They are the oldest ones, so that a walk from the newest row finds them last. */
const RARE = [
  `update server set status = 'REBUILDING', change = '{}' where id in (select id from server where status = 'RUNNING' order by id limit 3)`,
  `update top_up set status = 'PENDING' where id in (select id from top_up where status = 'EXPIRED' order by id limit 10)`,
  `update task set error = 'The engine does not answer.' where id in (select id from task order by id limit 5)`,
  `update task set state = 'DEAD' where id in (select id from task where error is not null order by id limit 2)`,
];

/** Adds the rows of the servers from one number up to another. @param db by the owner of the tables */
export async function grow(db: Database, from: number, until: number): Promise<void> {
  await db.transaction(async (tx) => {
    // Triggers and foreign keys only check, or keep what these statements write themselves.
    for (const setting of ['session_replication_role = replica', `work_mem = '256MB'`, `maintenance_work_mem = '1GB'`])
      await tx.query(`set local ${setting}`);
    await tx.query(TIME_OF);
    const indexes = await tx.query<{ name: string; definition: string }>(
      `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
        where indrelid = any($1::text[]::regclass[]) and not indisunique`,
      [LARGE_TABLES],
    );
    for (const { name } of indexes) await tx.query(`drop index ${name}`);
    const secret = Buffer.from(newWebhookSecret());
    for (const statement of STATEMENTS) {
      const count = Math.max(0, ...[...statement.matchAll(/\$(\d)/g)].map(([, place]) => Number(place)));
      await tx.query(statement, [from, until, secret].slice(0, count));
    }
    for (const { definition } of indexes) await tx.query(definition);
    if (from === 1) for (const statement of RARE) await tx.query(statement);
  });
  await db.query('vacuum (analyze)');
}
