/** The lanes of tasks that anybody can start: accounts that never paid have lanes of their own. */
import { expect, it } from 'vitest';
import { signalTask, startTask } from '../../entities/tasks/start.ts';
import { wakeWebhooks } from '../../entities/webhooks/outbox.ts';
import { topUpTask } from '../../provisioning/payments/task.ts';
import { serverTask } from '../../provisioning/servers/task.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold({ ROLES: 'api', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
const pay = (id: string) =>
  operator(
    `mutation { adjustBalance(accountId: "${id}", amountUsd: 5, key: "${id}", reason: "lanes") { balanceUsd } }`,
  );
const laneOf = async (subject: string) =>
  (await db.query<{ lane: string }>('select lane from task where subject = $1', [subject]))[0]?.lane;

it('A signal takes the task of a top-up to the lane of payers once its account has paid', async () => {
  const [{ id: free }, { id: payer }] = [await newAccount(), await newAccount()];
  await pay(payer);
  const start = (subject: string, id: string) =>
    db.transaction((tx) => startTask(tx, topUpTask(subject, id, 'btcpay')));
  await start('TOP-FREE', free);
  await start('TOP-PAYER', payer);
  expect([await laneOf('TOP-FREE'), await laneOf('TOP-PAYER')]).toEqual(['payments-free', 'payments']);
  await db.transaction((tx) => signalTask(tx, 'TOP-FREE'));
  expect(await laneOf('TOP-FREE')).toBe('payments-free');
  await pay(free);
  await db.transaction((tx) => signalTask(tx, 'TOP-FREE'));
  expect(await laneOf('TOP-FREE')).toBe('payments');
});

it('A second start takes the task of an account that has paid to the lane of payers', async () => {
  const { id } = await newAccount();
  const start = () => db.transaction((tx) => startTask(tx, topUpTask('TOP-AGAIN', id, 'btcpay')));
  await start();
  await pay(id);
  await start();
  expect(await laneOf('TOP-AGAIN')).toBe('payments');
});

it('The webhooks of free accounts have a lane of their own, those of the operator have not', async () => {
  const { id, rest } = await newAccount();
  const { body: hook } = await rest('POST', '/v1/webhooks', { url: 'http://127.0.0.1:1900/', events: ['*'] });
  const wake = (webhookId: string) => wakeWebhooks(db, db.bus, [webhookId]);
  await wake(hook.id);
  expect(await laneOf(hook.id)).toBe('webhooks-free');
  await pay(id);
  await wake(hook.id);
  expect(await laneOf(hook.id)).toBe('webhooks');
  await db.query(`update webhook set account_id = 'operator' where id = $1`, [hook.id]);
  await db.query('delete from task where subject = $1', [hook.id]);
  await wake(hook.id);
  expect(await laneOf(hook.id)).toBe('webhooks');
});

it('Other tasks have one lane for all accounts', async () => {
  const { id } = await newAccount();
  const server = { orderNumber: 'SRV-LANE', accountId: id, placement: null };
  await db.transaction((tx) => startTask(tx, serverTask(server as never)));
  expect(await laneOf('SRV-LANE')).toBe('servers');
});
