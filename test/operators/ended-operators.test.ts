/** Operators whose role or token ends while they act. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';

const { db, graphqlUrl, newAccount, operator } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

async function add(name: string, role: string) {
  const { data } = await operator(
    `mutation ($name: OperatorName!, $role: OperatorRole!) {
      addOperator(input: { name: $name, role: $role }) { token operator { id } } }`,
    { name, role },
  );
  const token: string = data.addOperator.token;
  return { token, id: data.addOperator.operator.id as string, call: graphqlClient(graphqlUrl, token) };
}
const end = (id: string) => operator('mutation ($id: ID!) { endOperator(id: $id) { state } }', { id });
const setRole = (id: string, role: string) => `setOperatorRole(id: "${id}", role: ${role}) { role }`;
const roleOf = async (call: ReturnType<typeof graphqlClient>) =>
  (await call('{ currentOperator { role } }')).data.currentOperator.role;
const adjust = (account: string, key: string) =>
  `adjustBalance(accountId: "${account}", amountUsd: 5, reason: "Mine", key: "${key}") { __typename }`;

describe('A request that began before the operator ended', () => {
  it('makes no change after the one that it waits in', async () => {
    const account = await newAccount();
    const { id, call } = await add('eve', 'OWNER');
    const [isLocked, isEnded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holder = db.transaction(async (tx) => {
      await lockAccount(tx, account.id);
      isLocked.resolve();
      await isEnded.promise;
    });
    await isLocked.promise;
    const asked = call(`mutation { first: ${adjust(account.id, 'first')} back: ${setRole(id, 'OWNER')} }`);
    await eventually(async () => {
      const [row] = await db.query<{ n: number }>(
        `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return row!.n > 0;
    });
    await operator(`mutation { ${setRole(id, 'READ_ONLY')} }`);
    isEnded.resolve();
    await holder;
    expect((await asked).errors[0].extensions.code).toBe('revoked_credential');
    expect(await roleOf(call)).toBe('READ_ONLY');
  });

  it('adds no operator if it waited for the one that ended its own', async () => {
    const { id, call } = await add('ada', 'OWNER');
    const ADD = 'mutation { addOperator(input: { name: "backdoor", role: OWNER }) { token } }';
    const [, added] = await Promise.all([end(id), call(ADD)]);
    const { data } = await operator('{ operators(state: ACTIVE) { name } }');
    const isThere = data.operators.some(({ name }: { name: string }) => name === 'backdoor');
    // Either it came first, or it was refused.
    expect(isThere).toBe(added.errors === undefined);
    expect((await call(ADD)).errors[0].extensions.code).toBe('revoked_credential');
  });
});

it('A WebSocket takes no message of an ended operator, also before the client answers the close', async () => {
  const account = await newAccount();
  const { id, token } = await add('mal', 'BILLING');
  const socket = new WebSocket(graphqlUrl.replace('http', 'ws'), 'graphql-transport-ws') as WebSocket & {
    _socket: Socket;
    _receiver: NodeJS.EventEmitter;
  };
  await once(socket, 'open');
  const admitted = once(socket, 'message');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await admitted;
  const closed = once(socket._socket, 'close');
  const query = `mutation { ${adjust(account.id, 'last')} }`;
  // The client answers the close of the service with a mutation in place of a close.
  socket._receiver.removeAllListeners('conclude');
  socket._receiver.once('conclude', () =>
    socket.send(JSON.stringify({ id: 'last', type: 'subscribe', payload: { query } })),
  );
  await end(id);
  await closed;
  expect(await account.balance()).toBe(0);
});

describe('The webhook that an operator created', () => {
  const hookOf = async (name: string) => {
    const added = await add(name, 'OWNER');
    const CREATE = 'mutation { createWebhook(input: { url: "http://127.0.0.1:20009/" }) { webhook { id status } } }';
    return { ...added, hook: (await added.call(CREATE)).data.createWebhook.webhook as { id: string; status: string } };
  };
  const seen = async (hook: string) =>
    (await operator('{ webhooks { data { id status disabledReason expiresAt } } }')).data.webhooks.data.find(
      ({ id }: { id: string }) => id === hook,
    );

  it('stops when the operator ends', async () => {
    const { id, hook } = await hookOf('ben');
    expect(await seen(hook.id)).toMatchObject({ status: 'ENABLED' });
    await end(id);
    expect(await seen(hook.id)).toMatchObject({ status: 'DISABLED', disabledReason: 'creator_revoked' });
  });

  it('stops when the operator gets a role that creates none', async () => {
    const { id, hook } = await hookOf('kim');
    await operator(`mutation { ${setRole(id, 'SUPPORT')} }`);
    expect(await seen(hook.id)).toMatchObject({ status: 'DISABLED' });
  });

  it('stops when the token of the operator is replaced', async () => {
    const { id, hook } = await hookOf('lea');
    await operator(`mutation { renewOperatorToken(id: "${id}", days: 1) { token } }`);
    expect(await seen(hook.id)).toMatchObject({ status: 'DISABLED', disabledReason: 'creator_revoked' });
  });

  it('expires with the token of the operator', async () => {
    const { id, hook } = await hookOf('joe');
    const { operators } = (await operator('{ operators { id expiresAt } }')).data;
    const { expiresAt } = operators.find((one: { id: string }) => one.id === id);
    expect(await seen(hook.id)).toMatchObject({ status: 'ENABLED', expiresAt });
  });
});
