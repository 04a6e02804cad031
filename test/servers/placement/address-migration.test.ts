/** Networks of an earlier version get a kind (0022-addresses.sql), and addresses their history (0036-accounts.sql). */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, inject, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { administer, withDatabase } from '../../setup/postgres.ts';

const FOLDER = 'entities/database/migrations';
const [ADDRESSES, ACCOUNTS] = ['0022-addresses.sql', '0036-accounts.sql'];
const files = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .sort();
const url = inject('postgresUrl');
const name = `freehold_test_${randomBytes(6).toString('hex')}`;
await administer(url, `create database ${name}`);
const client = new pg.Client({ connectionString: withDatabase(url, name) });
await client.connect();
atEnd(async () => {
  await client.end();
  await administer(url, `drop database ${name} with (force)`);
});
const run = (file: string) => client.query(readFileSync(join(FOLDER, file), 'utf8'));
const pool = (id: string, region: string, cidr: string, gateway: string | null = null) =>
  client.query(
    `insert into address_pool (id, region_code, family, cidr, gateway)
     values ($1, $2, case family($3::inet) when 4 then 'IPV4' else 'IPV6' end, $3, $4)`,
    [id, region, cidr, gateway],
  );
const host = (region: string, kind: string) =>
  client.query(
    `insert into host (name, region_code, kind, driver, vcpus, memory_mb, disk_gb, service_code)
     values ($1, $2, $3, 'd', 1, 1, 1, case when $3 = 'DEDICATED' then 'ded-1' end)`,
    [`${region}-${kind}`, region, kind],
  );

it('A network is for dedicated servers if only these can use it, and gives up the /64 of its gateway', async () => {
  for (const file of files) if (file < ADDRESSES) await run(file);
  for (const [region, kinds] of Object.entries({
    ams: ['DEDICATED'],
    zrh: ['DEDICATED', 'VPS'],
    buh: ['VPS'],
    kef: [],
  }))
    for (const kind of kinds) await host(region, kind);
  for (const [index, region] of ['ams', 'zrh', 'buh', 'kef'].entries())
    await pool(region, region, `10.${index}.0.0/24`);
  await pool('wide', 'ams', '2001:db8::/62', '2001:db8:0:1::1');
  await client.query(
    `insert into address (address, family, region_code, prefix_length, gateway, pool_id, held_by)
     select format('2001:db8:0:%s::/64', n)::inet, 'IPV6', 'ams', 64, '2001:db8:0:1::1', 'wide', null from generate_series(0, 3) n`,
  );
  await run(ADDRESSES);
  expect((await client.query('select id, kind from address_pool order by id')).rows).toEqual([
    { id: 'ams', kind: 'DEDICATED' },
    { id: 'buh', kind: 'VPS' },
    { id: 'kef', kind: 'VPS' },
    { id: 'wide', kind: 'DEDICATED' },
    { id: 'zrh', kind: 'VPS' },
  ]);
  const left = await client.query('select text(address) as address, kind from address order by address.address');
  expect(left.rows).toEqual(
    ['2001:db8::', '2001:db8:0:2::', '2001:db8:0:3::'].map((one) => ({ address: `${one}/64`, kind: 'DEDICATED' })),
  );
});

it('The history of an address begins with the order that has it', async () => {
  for (const file of files) if (file > ADDRESSES && file < ACCOUNTS) await run(file);
  await client.query(
    `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, price_month_micros,
       setup_fee_micros, created_at) values ('s', 'a', 'SRV-1', 'VPS', 'RUNNING', 'web', 'vps-1', 'ams', 'x', 1, 0, '2026-01-02Z')`,
  );
  await client.query(`update address set held_by = 'SRV-1' where address = '2001:db8::/64'`);
  await run(ACCOUNTS);
  expect((await client.query('select * from address_use')).rows).toEqual([
    { order_number: 'SRV-1', address: '2001:db8::/64', held_from: new Date('2026-01-02Z'), held_until: null },
  ]);
});
