/** Findings and circuit breakers, as the operator sees them. test/servers/reconcile/observe.test.ts has their origin. */
import { expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();
const READ = '{ findings { kind engine orderNumber generation detail } brakes { engine reason } }';
const RELEASE = 'mutation { releaseBrake(engine: "simulated") { engine reason } }';

it('only the operator sees open findings and circuit breakers, and closes them', async () => {
  await db.query(
    `insert into finding (id, kind, driver, order_number, generation, detail, resolved_at) values
      ('fnd_1', 'LOST', 'simulated', 'SRV-1', 1, 'It is absent.', null), ('fnd_2', 'ORPHAN', 'simulated', 'SRV-2', 1, 'x', now())`,
  );
  await db.query(`insert into brake (driver, reason) values ('simulated', '9 of 10 machines vanished at once.')`);
  const { data } = await operator(READ);
  expect(data).toEqual({
    findings: [{ kind: 'LOST', engine: 'simulated', orderNumber: 'SRV-1', generation: 1, detail: 'It is absent.' }],
    brakes: [{ engine: 'simulated', reason: '9 of 10 machines vanished at once.' }],
  });
  const account = await newAccount();
  for (const query of ['{ findings { id } }', '{ brakes { engine } }', RELEASE])
    expect((await account.graphql(query)).errors[0].extensions.code).toBe('insufficient_scope');

  expect((await operator(RELEASE)).data.releaseBrake.engine).toBe('simulated');
  expect((await operator(RELEASE)).errors[0].extensions.code).toBe('not_found');
  expect((await operator(READ)).data.brakes).toEqual([]);
  const audited = await db.query(`select actor_type from audit_entry where action = 'engine.released'`);
  expect(audited).toEqual([{ actorType: 'operator' }]);
});
