/** The rows that stay, and those that workers delete. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { idFloor, newId } from '../../entities/ids.ts';
import { historyRetentionProcess } from '../../provisioning/accounts/history-retention.ts';
import type { LeasedTask } from '../../provisioning/tasks/tasks.ts';
import { asSuperuser } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount } = await startFreehold({ ROLES: 'api' });
const { start } = historyRetentionProcess(db).steps;
const DAY_MS = 86_400_000;

/** Writes events of a subject of some ages in days. @returns their ids */
async function write(accountId: string, subject: string, ages: number[]): Promise<string[]> {
  const ids = ages.map((days) => `${idFloor('evt', Date.now() - days * DAY_MS)}${newId('evt').slice(-16)}`);
  await asSuperuser(
    db,
    `insert into event (id, account_id, type, subject, data, created_at)
       select id, $1, 'server.updated', $2, '{}', now() - make_interval(days => age) from unnest($3::text[], $4::int[]) as given (id, age)`,
    [accountId, subject, ids, ages],
  );
  return ids;
}

const idsOf = async (subject: string) =>
  (await db.query<{ id: string }>('select id from event where subject = $1 order by id desc', [subject])).map(
    ({ id }) => id,
  );

it('A worker deletes events after 400 days. It keeps the newest of each subject, and those of the operator', async () => {
  const { id } = await newAccount();
  const [[young, , ...old], quiet, operators] = [
    await write(id, 'SRV-BUSY', [10, 399, 402, 500]),
    await write(id, 'SRV-QUIET', [450, 451]),
    await write('operator', 'TIER', [500, 600]),
  ];
  expect(old).toHaveLength(2);
  const { data } = await start!({ data: {} } as LeasedTask);
  expect(await idsOf('SRV-BUSY')).toHaveLength(2);
  expect((await idsOf('SRV-BUSY'))[0]).toBe(young);
  expect(await idsOf('SRV-QUIET')).toEqual([quiet[0]]);
  expect(await idsOf('TIER')).toEqual(operators);
  // The next pass goes on after the last one.
  expect(await start!({ data } as LeasedTask)).toMatchObject({ data, afterSeconds: 3600 });
});

it('The role of the service can delete no younger events', async () => {
  const { id } = await newAccount();
  await write(id, 'SRV-YOUNG', [10, 20]);
  await db.query(`select delete_old_events('', 'evt_z', 100000)`);
  expect(await idsOf('SRV-YOUNG')).toHaveLength(2);
});

it('docs/operate/retention.md has a rule for each table', async () => {
  const page = readFileSync('docs/operate/retention.md', 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const named = rows.flatMap((line) => [...line.split('|')[1]!.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  const tables = await db.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = current_schema() order by 1`,
  );
  expect(named.toSorted()).toEqual(tables.map(({ name }) => name));
});
