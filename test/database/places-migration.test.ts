/** The migration to places, over data of the version before it. */
import { expect, it } from 'vitest';
import { Places0000000000026 } from '../../entities/database/migrations/0026-places.ts';
import { MIGRATIONS } from '../../entities/database/migrations/index.ts';
import { newDatabase } from '../setup/database.ts';

it('gives each server that holds one its place, two where it is resized, and leaves the rest free', async () => {
  const db = await newDatabase();
  const undo = async () => {
    for (let n = MIGRATIONS.length; n > MIGRATIONS.indexOf(Places0000000000026); n--)
      await db.source.undoLastMigration();
  };
  await undo();
  const server = (order: string, tier: string, ipv4: string | null, change: object | null = null) =>
    db.query(
      `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, ipv4, change,
          price_month_micros, setup_fee_micros)
        values ($1, 'acct', $1, 'VPS', 'RUNNING', 'srv', $2, 'ams', 'debian-13', $3, $4, 0, 0)`,
      [order, tier, ipv4, change && JSON.stringify(change)],
    );
  await server('SRV-A', 'vps-1', '192.0.2.1');
  await server('SRV-B', 'vps-1', '192.0.2.2', { operation: 'resize', serviceCode: 'vps-2' });
  await server('SRV-C', 'vps-1', '192.0.2.3', { operation: 'reboot' });
  await server('SRV-D', 'vps-1', null);
  await server('SRV-E', 'vps-gone', '192.0.2.4');
  await db.query(`update stock set claimed = 3 where region_code = 'ams' and service_code = 'vps-1'`);
  await db.query(`update stock set claimed = 1 where region_code = 'ams' and service_code = 'vps-2'`);
  await db.query(`update stock set total = 2000000000 where region_code = 'ams' and service_code = 'vps-5'`);
  const before = await db.query<{ claimed: number }>('select * from stock where claimed > 0 order by service_code');

  await db.source.runMigrations({ transaction: 'each' });
  const held = await db.query(
    `select service_code as tier, order_number as "order" from place where order_number is not null order by 1, 2`,
  );
  expect(held).toEqual([
    { tier: 'vps-1', order: 'SRV-A' },
    { tier: 'vps-1', order: 'SRV-B' },
    { tier: 'vps-1', order: 'SRV-C' },
    { tier: 'vps-2', order: 'SRV-B' },
    { tier: 'vps-gone', order: 'SRV-E' },
  ]);
  const [wrong] = await db.query<{ count: number }>(
    `select count(*)::int from stock where total <> (
      select count(*) from place where place.region_code = stock.region_code and place.service_code = stock.service_code)`,
  );
  expect(wrong!.count).toBe(0);
  const totals = await db.query(
    `select service_code as tier, total from stock
      where region_code = 'ams' and service_code in ('vps-1', 'vps-5', 'vps-gone') order by 1`,
  );
  expect(totals).toEqual([
    { tier: 'vps-1', total: 35 },
    { tier: 'vps-5', total: 100_000 },
    { tier: 'vps-gone', total: 1 },
  ]);

  await undo();
  const after = await db.query('select * from stock where claimed > 0 order by service_code');
  expect(after).toEqual([...before, expect.objectContaining({ service_code: 'vps-gone', claimed: 1 })]);
});
