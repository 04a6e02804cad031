/** Measures page 1,000 of a list, or the last full page of a filtered list, relative to page 1. */
import assert from 'node:assert/strict';
import type { Database } from '../entities/database/database.ts';
import { newId } from '../entities/ids.ts';
import { restClient } from '../test/setup/spawn.ts';
import { type Figure, median } from './figure.ts';
import { load, prepare } from './load.ts';
import type { SeededAccount } from './seed.ts';

const PAGE = 20;
/** Rows of each list: more than 1,000 pages. */
const ROWS = 1_002 * PAGE;
const ROUNDS = 9;
const SLICE_SECONDS = 0.1;
const BAR = 1.5;

/** Lists and their filters. Each filter matches a fifth of the rows. */
const LISTS: [path: string, filters: string[]][] = [
  ['/v1/servers', ['status=stopped', 'region=zrh', 'label_selector=env%3Dprod,role%21%3Ddb']],
  ['/v1/account/audit-log', ['action=server.updated', 'since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z']],
  ['/v1/account/usage', []],
  ['/v1/billing/topups', ['status=expired']],
  ['/v1/auth/api-keys', ['status=revoked']],
];

export async function pages(port: number, db: Database, account: SeededAccount): Promise<Figure[]> {
  await fill(db, account.id);
  const figures: Figure[] = [];
  for (const [path, filters] of LISTS) {
    for (const filter of ['', ...filters]) {
      const list = `${path}?limit=${PAGE}${filter && `&${filter}`}`;
      const { cursor, number } = await deepPage(port, account, list);
      const ratio = await compare(port, account, [list, `${list}&cursor=${cursor}`]);
      const shown = filter ? `${path}?${decodeURIComponent(filter).slice(0, 26)}` : path;
      figures.push({ name: `page ${number} of ${shown}, to page 1`, ratio, bar: BAR });
    }
  }
  return figures;
}

/** Returns the cursor of page 1,000, or of the last full page of a shorter list. */
async function deepPage(port: number, account: SeededAccount, list: string) {
  const rest = restClient(`http://127.0.0.1:${port}`, account.credential);
  const [most, wanted] = [10 * PAGE, 999 * PAGE];
  let [cursor, passed] = ['', 0];
  while (passed < wanted) {
    const limit = Math.min(most, wanted - passed);
    const path = list.replace(`limit=${PAGE}`, `limit=${limit}`);
    const { status, body } = await rest('GET', cursor ? `${path}&cursor=${cursor}` : path);
    assert.equal(status, 200, JSON.stringify(body));
    if (!body.has_more) break;
    cursor = body.next_cursor;
    passed += limit;
  }
  assert.ok(passed >= 100 * PAGE, `${list} is too short.`);
  return { cursor, number: passed / PAGE + 1 };
}

async function compare(port: number, { credential }: SeededAccount, paths: [string, string]): Promise<number> {
  const [first, deep] = paths.map((path) => prepare('GET', path, credential)) as [Buffer, Buffer];
  const micros = async (request: Buffer) => {
    const slice = { port, request, expects: (body: Buffer) => body.includes('"has_more"'), connections: 1 };
    const { requests, seconds } = await load({ ...slice, seconds: SLICE_SECONDS });
    return (seconds / requests) * 1e6;
  };
  const ratios: number[] = [];
  for (let round = -1; round < ROUNDS; round++) {
    const [one, other] =
      round % 2 ? [await micros(first), await micros(deep)] : [await micros(deep), await micros(first)];
    if (round >= 0) ratios.push(round % 2 ? other / one : one / other);
  }
  return median(ratios);
}

/** Fills each list with rows that differ in the filtered columns. */
async function fill(db: Database, accountId: string) {
  const ids = (prefix: Parameters<typeof newId>[0]) => Array.from({ length: ROWS }, () => newId(prefix));
  const rows = 'unnest($1::text[]) with ordinality as given(id, n)';
  await db.query(
    `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, labels, price_month_micros, setup_fee_micros)
      select id, $2, 'SRV-' || n, 'VPS', case n % 5 when 0 then 'STOPPED' else 'RUNNING' end, 'web', 'vps-1',
        case n % 5 when 1 then 'zrh' else 'ams' end, 'debian-13',
        jsonb_build_object('env', case n % 5 when 2 then 'prod' else 'test' end), 6000000, 0 from ${rows}`,
    [ids('srv'), accountId],
  );
  await db.query(
    `insert into audit_entry (id, account_id, action, actor_type)
      select id, $2, case n % 5 when 0 then 'server.updated' else 'api.request' end, 'system' from ${rows}`,
    [ids('aud'), accountId],
  );
  await db.query(
    `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
      select id, $2, 'adjustment', 'gateway:bench', 'available:' || $2, 1, id, 'x' from ${rows}`,
    [ids('xfr'), accountId],
  );
  await db.query(`update balance set available_micros = available_micros + $2 where account_id = $1`, [
    accountId,
    ROWS,
  ]);
  await db.query(
    `insert into top_up (id, account_id, order_number, status, mode, amount_micros, bonus_micros, crypto, network, amount_crypto,
        received_crypto, rate_micros, confirmations, confirmations_required, tx_ids, credited_micros)
      select id, $2, 'TOP-' || n, case n % 5 when 0 then 'EXPIRED' else 'CONFIRMED' end, 'CRYPTO', 50000000, 0, 'BTC', 'bitcoin',
        '0.001', '0', 50000000000, 0, 2, '{}', 0 from ${rows}`,
    [ids('top'), accountId],
  );
  await db.query(
    `insert into api_key (id, account_id, name, scope, prefix, digest, status)
      select id, $2, 'k', 'read', 'svc_live_xxxx', sha256(id::bytea), case n % 5 when 0 then 'REVOKED' else 'ACTIVE' end from ${rows}`,
    [ids('key'), accountId],
  );
  await db.query('vacuum (analyze)');
}
