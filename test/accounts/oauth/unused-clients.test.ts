/** The worker removes unused OAuth clients. Used clients stay, and so do clients of accounts with money. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../../entities/ids.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';
import { oauthRequests } from './requests.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold();
const { introspect, newClient, requestToken, tokenOf } = oauthRequests(anonymous);

const KEY = { name: 'k', scope: 'read' };

/** Moves the registration and the last use of a client into the past, and makes its task due. Its first client made an account. */
async function age(clientId: string, { registered, used = registered }: { registered: number; used?: number | null }) {
  await db.query(
    `with aged as (
      update oauth_client set created_at = now() - make_interval(secs => $2::float8 * 86400), last_used_at = now() - make_interval(secs => $3::float8 * 86400)
      where id = $1 returning account_id, created_at),
    older as (
      update account set created_at = aged.created_at from aged, oauth_client client
      where account.id = aged.account_id and client.id = $1 and account.created_at = client.created_at)
    update task set run_at = now() where subject = $1`,
    [clientId, registered, used],
  );
}
/** Waits until the worker has run the task of a client; undefined if the client has gone. */
const sleeping = (clientId: string) =>
  eventually(async () => {
    const [task] = await db.query<{ days: number }>(
      'select extract(epoch from run_at - now())::float / 86400 as days from task where subject = $1',
      [clientId],
    );
    return (!task || task.days > 0.5) && { days: task?.days };
  });
const remain = async (clientId: string) =>
  (await db.query('select 1 from oauth_client where id = $1', [clientId])).length === 1;

describe('An OAuth client', () => {
  it('goes after 30 days without use if its account has no money', async () => {
    const client = await newClient();
    await age(client.client_id, { registered: 31 });
    await eventually(async () => !(await remain(client.client_id)));
    expect((await requestToken(client)).body.code).toBe('invalid_client');
    const told = await db.query(`select 1 from event where type = 'oauth_client.removed' and subject = $1`, [
      client.client_id,
    ]);
    expect(told).toHaveLength(1);
  });

  it('takes its webhooks with it, and the worker tells of both', async () => {
    const account = await newAccount();
    const client = await newClient({ scope: 'full' }, account.rest);
    const url = 'https://93.184.215.14/';
    const { body } = await restClient(publicUrl, await tokenOf(client))('POST', '/v1/webhooks', { url });
    await age(client.client_id, { registered: 31 });
    await eventually(async () => !(await remain(client.client_id)));
    const [webhook] = await db.query('select status, disabled_reason from webhook where id = $1', [body.id]);
    expect(webhook).toEqual({ status: 'DISABLED', disabledReason: 'creator_revoked' });
    const told = await db.query<{ type: string }>('select type from event where subject = any($1) order by id', [
      [client.client_id, body.id],
    ]);
    expect(told.map(({ type }) => type)).toEqual(expect.arrayContaining(['oauth_client.removed', 'webhook.disabled']));
  });

  it('goes after a day if a stranger registered it and never used it', async () => {
    const [unused, young] = [await newClient(), await newClient()];
    const owned = await newClient({}, (await newAccount()).rest);
    await age(unused.client_id, { registered: 1.1, used: null });
    await eventually(async () => !(await remain(unused.client_id)));
    await age(young.client_id, { registered: 0.4, used: null });
    expect((await sleeping(young.client_id)).days).toBeCloseTo(0.6, 1);
    await age(owned.client_id, { registered: 2, used: null });
    expect((await sleeping(owned.client_id)).days).toBeCloseTo(28, 0);
  });

  it('stays after a use, and its next check is 30 days after that use', async () => {
    const client = await newClient();
    await age(client.client_id, { registered: 90, used: 10 });
    expect((await sleeping(client.client_id)).days).toBeCloseTo(20, 0);
    expect((await introspect(await tokenOf(client))).body.active).toBe(true);
  });

  it('stays while a key that it created is active', async () => {
    const client = await newClient({ scope: 'full' });
    const { body } = await restClient(publicUrl, await tokenOf(client))('POST', '/v1/auth/api-keys', KEY);
    await age(client.client_id, { registered: 400 });
    expect((await sleeping(client.client_id)).days).toBeCloseTo(1, 0);
    await db.query(`update api_key set status = 'REVOKED', revoked_at = now() where id = $1`, [body.key_id]);
    await age(client.client_id, { registered: 400 });
    await eventually(async () => !(await remain(client.client_id)));
  });

  it('stays while a payment to its account may come', async () => {
    const client = await newClient({ scope: 'full' });
    const body = { amount_usd: 50, crypto: 'BTC' };
    const topUp = await restClient(publicUrl, await tokenOf(client))('POST', '/v1/billing/topups', body);
    const about = [topUp.body.order_number];
    // The simulated payment is as if it had not come yet.
    await eventually(async () => {
      const sql = `update balance set available_micros = 0 where available_micros > 0
        and account_id = (select account_id from top_up where order_number = $1) returning account_id`;
      return (await db.query(sql, about)).length;
    });
    await age(client.client_id, { registered: 400 });
    expect((await sleeping(client.client_id)).days).toBeCloseTo(1, 0);
    await db.query(`update top_up set created_at = now() - interval '32 days' where order_number = $1`, about);
    await age(client.client_id, { registered: 400 });
    await eventually(async () => !(await remain(client.client_id)));
  });

  it('stays for thirty days if a client of the same agent registered it, and it was never used', async () => {
    const first = await newClient({ scope: 'full' });
    const second = await newClient({}, restClient(publicUrl, await tokenOf(first)));
    await age(second.client_id, { registered: 2, used: null });
    expect((await sleeping(second.client_id)).days).toBeCloseTo(28, 0);
  });

  it('stays while its account has money', async () => {
    const account = await newAccount();
    await account.fund(30);
    const client = await newClient({}, account.rest);
    await age(client.client_id, { registered: 400 });
    expect((await sleeping(client.client_id)).days).toBeCloseTo(1, 0);
    expect(await remain(client.client_id)).toBe(true);
  });

  it('stays while refunds to its account wait for a payment', async () => {
    const client = await newClient();
    const [owner] = await db.query<{ accountId: string }>('select account_id from oauth_client where id = $1', [
      client.client_id,
    ]);
    const keep = (micros: bigint) =>
      db.query('update balance set withheld_micros = $2 where account_id = $1', [owner!.accountId, micros]);
    await keep(1n);
    await age(client.client_id, { registered: 400 });
    expect((await sleeping(client.client_id)).days).toBeCloseTo(1, 0);
    await keep(0n);
    await age(client.client_id, { registered: 400 });
    await eventually(async () => !(await remain(client.client_id)));
  });

  it.each(['OBSERVED', 'CONFIRMING', 'CREDITED', 'ASSIGNED', 'UNMATCHED', 'REVERSED'])(
    'stays while a payment of its account is %s',
    async (status) => {
      const client = await newClient();
      const id = newId('pay');
      await db.query(
        `insert into payment (id, mode, external_key, network, tx_id, position, coin, address, account_id, units, status, seen_at)
          select $1, 'CRYPTO', 'pay:bitcoin:' || $1, 'bitcoin', $1, 0, 'BTC', 'x', account_id, '1', $2, now()
          from oauth_client where id = $3`,
        [id, status, client.client_id],
      );
      await age(client.client_id, { registered: 400 });
      expect((await sleeping(client.client_id)).days).toBeCloseTo(1, 0);
      await db.query(`update payment set status = 'WRITTEN_OFF' where id = $1`, [id]);
      await age(client.client_id, { registered: 400 });
      await eventually(async () => !(await remain(client.client_id)));
    },
  );
});
