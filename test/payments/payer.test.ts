/** The service asks at each call of a free account whether it has paid. The answer must read few pages. */
import { expect, it } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { HAS_PAID } from '../../entities/payments/payer.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { asAdministrator } from '../setup/postgres.ts';

type Plan = { 'Shared Hit Blocks': number; 'Shared Read Blocks': number };

it('An account without transfers is known from few pages, also if few accounts have all transfers', async () => {
  const db = await Database.open(asAdministrator(await newDatabaseUrl()), { poolSize: 1 });
  atEnd(() => db.close());
  await db.query('alter table transfer disable trigger all');
  await db.query(`
    insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
    select 'xfr_' || n, 'acct_' || n % 10, 'renewal', 'available:acct_' || n % 10, 'revenue', 1, 'payer' || n, '' from generate_series(1, 100000) as n`);
  await db.query('analyze transfer');
  const pages = await db.transaction(async (tx) => {
    // A statement that runs often gets such a plan.
    await tx.query('set local plan_cache_mode = force_generic_plan');
    await tx.query(`prepare has_paid (text) as ${HAS_PAID.text}`);
    const [row] = await tx.query<Record<string, { Plan: Plan }[]>>(
      `explain (analyze, buffers, format json) execute has_paid ('acct_none')`,
    );
    const { Plan } = Object.values(row!)[0]![0]!;
    return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
  });
  expect(pages).toBeLessThan(30);
});
