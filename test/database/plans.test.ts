/**
 * PostgreSQL has an index for each statement that it keeps with a generic plan. It scans a table that grows only for work that
 * reads the whole of it.
 */
import pg from 'pg';
import { beforeAll, expect, inject, it } from 'vitest';
import { grow } from '../../bench/scale/seed.ts';
import { Database } from '../../entities/database/database.ts';
import { keptStatements } from '../../entities/database/prepared.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { asAdministrator } from '../setup/postgres.ts';
import { say } from '../setup/say.ts';
import { importEntities } from '../setup/sources.ts';

const GROWING = new Set([
  ...['account', 'balance', 'transfer', 'top_up', 'payment', 'usage_day', 'spending_month'],
  ...['server', 'placement', 'place', 'address', 'address_use', 'meter', 'reverse_dns_told'],
  ...['event', 'audit_entry', 'audit_link', 'message', 'webhook', 'webhook_delivery', 'webhook_snapshot'],
  ...['api_key', 'session', 'ssh_key', 'oauth_client', 'idempotency_key'],
]);

/** The statements that read a whole table, by their beginnings, and the reason. */
const WHOLE: [beginning: RegExp, reason: string][] = [
  [
    /^(select wrong\.row|select account_id as row|with used as|with summed as)/,
    'The proof of the books reads all money.',
  ],
  [
    /^(with sold as|select coin, count\(\*\))/,
    'A report of the operator reads all servers, or the payments of its time.',
  ],
  [
    /\bas holding\b|^(select coalesce\(sum\(units\)|select name \|\| ' ' \|\| coin)/,
    'A payout of the operator sums up the payments of a wallet.',
  ],
  [/^select wallet_address as address/, 'The operator imports the addresses of a wallet.'],
  [/idempotency_key .*key_digest, 'hex'\)/, '`npm run reseal` reads all sealed answers of a day.'],
  [/^with unread as/, 'A row of a meter is small, and the tick runs once an hour.'],
  [/^with meter as materialized/, 'The tick of the meters reads the machines of the month.'],
];

/** The version of the server of this run. */
async function versionOf(): Promise<number> {
  const server = new pg.Client(inject('postgresUrl'));
  await server.connect();
  const { rows } = await server.query(`select current_setting('server_version_num')::int as version`);
  await server.end();
  return rows[0].version;
}

/** PostgreSQL then scans a table only if it has no index for the statement. */
const SETTINGS = 'set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set jit = off';
let client: pg.Client;
beforeAll(async () => {
  await importEntities();
  const url = asAdministrator(await newDatabaseUrl());
  const db = await Database.open(url, { poolSize: 1 });
  await grow(db, 1, 6_000);
  await db.close();
  client = new pg.Client(url);
  await client.connect();
  atEnd(() => client.end());
  await client.query(SETTINGS);
});

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  Plans?: Plan[];
}

/** Returns the growing tables that the generic plan of a statement scans. */
async function scannedBy(text: string): Promise<string[]> {
  await client.query(`prepare planned as ${text}`);
  const { rows: prepared } = await client.query<{ count: bigint }>(
    `select cardinality(parameter_types) as count from pg_prepared_statements where name = 'planned'`,
  );
  const nulls = Array.from({ length: Number(prepared[0]!.count) }, () => 'null').join();
  const { rows } = await client.query(`explain (format json) execute planned ${nulls && `(${nulls})`}`);
  await client.query('deallocate planned');
  const scans = ({ Plans = [], ...node }: Plan): string[] => [
    ...(node['Node Type'] === 'Seq Scan' && GROWING.has(node['Relation Name']!) ? [node['Relation Name']!] : []),
    ...Plans.flatMap(scans),
  ];
  return [...new Set(scans(rows[0]['QUERY PLAN'][0].Plan))];
}

const isComparable = (await versionOf()) >= 180_000;
if (!isComparable) say('Skipped: the generic plans. Before PostgreSQL 18, a planner may prefer a scan that is off.');

it.skipIf(!isComparable)(
  'No kept statement scans a table that grows, except those that read the whole of it',
  async () => {
    const scanning: string[] = [];
    for (const text of keptStatements()) {
      const tables = await scannedBy(text);
      if (tables.length) scanning.push(`${text.replace(/\s+/g, ' ')} scans ${tables}`);
    }
    const unexpected = scanning.filter((one) => !WHOLE.some(([beginning]) => beginning.test(one)));
    expect(unexpected).toEqual([]);
    expect(WHOLE.filter(([beginning]) => !scanning.some((one) => beginning.test(one)))).toEqual([]);
  },
);
