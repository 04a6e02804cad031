/** The work of the statement that leases tasks, for the database. */
import { expect, it } from 'vitest';
import { TAKE_LEASES_IN_TURN } from '../../entities/tasks/lease.ts';
import { asSuperuser } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db } = await startFreehold({ ROLES: 'api' });

interface Node {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Join Filter'?: number;
  Plans?: Node[];
}
/** The rows that a plan and its parts read. */
const rowsOf = (node: Node): number =>
  (node['Actual Rows'] + (node['Rows Removed by Join Filter'] ?? 0)) * node['Actual Loops'] +
  (node.Plans ?? []).map(rowsOf).reduce((a, b) => a + b, 0);

it('Leasing tasks in turn grows with the due tasks alone, before PostgreSQL knows how many are due', async () => {
  const DUE = 2_000;
  const add = (count: number, name: string, runAt: string) =>
    db.query(`insert into task (id, lane, process, subject, account_id, step, run_at)
      select '${name}' || n, 'webhooks', 'webhook', '${name}' || n, 'acct_' || n / 9, 'deliver', ${runAt}
      from generate_series(1, ${count}) as n`);
  await add(10_000, 'sleeping', `now() + interval '20 days' * random()`);
  await asSuperuser(db, 'analyze task');
  await add(DUE, 'due', `now() - interval '1 second'`);
  const served = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`acct_${n}`, n]));
  const parameters = ['webhooks', 16, 30, 'worker', [], 6, 6, JSON.stringify(served)];
  const [explained] = await db.query<Record<string, [{ Plan: Node }]>>(
    `explain (analyze, format json) ${TAKE_LEASES_IN_TURN.text}`,
    parameters,
  );
  const [{ Plan: plan }] = Object.values(explained!)[0]!;
  // PostgreSQL 15 may compare each due task with the 80 chosen ones. A join of the due ones with themselves is far above.
  expect(rowsOf(plan)).toBeLessThan(120 * DUE);
  expect(await db.query('select from task where leased_by is not null')).toHaveLength(16);
});
