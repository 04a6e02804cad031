/** The engines of an earlier version keep their names when the service is upgraded. */
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../../entities/database/database.ts';
import { databaseBefore } from '../../setup/migration.ts';

it('A driver of both kinds becomes one engine, and another stays as it is', async () => {
  const { url, db } = await databaseBefore('0024', onTestFinished);
  const engine = (kind: string, driver: string) =>
    db.query('insert into engine (kind, driver, needs_hosts, simulated) values ($1, $2, $3, $4)', [
      ...[kind, driver, driver === 'bmc', driver === 'simulated'],
    ]);
  await engine('VPS', 'simulated');
  await engine('DEDICATED', 'simulated');
  await (await Database.open(url)).close();
  const engines = await db.query('select name, kinds, needs_hosts, simulated, state, connection from engine');
  expect(engines.rows).toEqual([
    {
      name: 'simulated',
      kinds: ['VPS', 'DEDICATED'],
      needs_hosts: false,
      simulated: true,
      state: 'ACTIVE',
      connection: null,
    },
  ]);
});
