import { beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../../entities/database/database.ts';
import { beforeOutsideCall } from '../../../entities/database/request-transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { IdempotencyKeys } from '../../../resolvers/idempotency.ts';
import { asSuperuser, newDatabaseUrl } from '../../setup/database.ts';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { type Answer, restClient } from '../../setup/spawn.ts';
import { VAULT } from '../../setup/vault.ts';

const url = await newDatabaseUrl();
const freehold = await startFreehold({ DATABASE_URL: url });
const { db, anonymous, newAccount } = freehold;
const second = await startFreehold({ DATABASE_URL: url, ROLES: 'api' });
let account: TestAccount;
beforeAll(async () => {
  account = await newAccount();
  await account.fund(500);
});

let keys = 0;
const newKey = () => `key-${++keys}`;
const withKey = (key: string) => ({ 'idempotency-key': key });
const order = (key: string, body: object = {}, rest = account.rest): Promise<Answer> =>
  rest('POST', '/v1/servers', { service_code: 'vps-1', ...body }, withKey(key));
const servers = async () => (await account.rest('GET', '/v1/servers?limit=200')).body.data.length as number;

describe('A request with an idempotency key', () => {
  it('gets the same answer when it is repeated, and orders only once', async () => {
    const [key, before] = [newKey(), await account.balance()];
    const first = await order(key, { hostname: 'once' });
    const again = await order(key, { hostname: 'once' });
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(again.body).toEqual(first.body);
    expect(first.body.root_password).toHaveLength(24);
    expect(await account.balance()).toBeCloseTo(before - 6, 6);
  });

  it('shows the secrets of its answer to no other credential of the account, and orders no second server', async () => {
    const [key, before] = [newKey(), await servers()];
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: 'other', scope: 'full' });
    const other = restClient(freehold.publicUrl, body.plaintext);
    expect((await order(key)).body.root_password).toHaveLength(24);
    const refused = await order(key, {}, other);
    expect([refused.status, refused.body.code]).toEqual([422, 'idempotency_key_reused']);
    expect(refused.body.detail).toContain('Another credential');
    expect(await servers()).toBe(before + 1);
  });

  it('has one effect when twenty arrive at once, and all get the same answer', async () => {
    const [key, before] = [newKey(), await servers()];
    const answers = await Promise.all(Array.from({ length: 20 }, () => order(key)));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.has('idempotency-replayed'))).toHaveLength(19);
    expect(await servers()).toBe(before + 1);
  });

  it('repeats the plaintext of an API key, which the database does not contain', async () => {
    const key = newKey();
    const body = { name: 'ci', scope: 'read' };
    const create = () => account.rest('POST', '/v1/auth/api-keys', body, withKey(key));
    const [first, again] = [await create(), await create()];
    expect(first.body.plaintext).toMatch(/^svc_live_/);
    expect(again.body.plaintext).toBe(first.body.plaintext);
    const rows = await db.query<{ row: string }>('select idempotency_key::text as row from idempotency_key');
    const text = rows.map(({ row }) => row).join('\n');
    expect(rows.length).toBeGreaterThan(0);
    for (const secret of [key, first.body.plaintext, Buffer.from(key).toString('hex')])
      expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(first.body.plaintext).toString('hex'));
  });

  it('is refused if its body differs from the first, but members may have another order', async () => {
    const key = newKey();
    const first = await order(key, { hostname: 'a', auto_renew: false });
    const other = await order(key, { hostname: 'b', auto_renew: false });
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
    const text = '{"auto_renew":false, "hostname":"a","service_code":"vps-1"}';
    const same = await account.rest('POST', '/v1/servers', text, withKey(key));
    expect([same.status, same.body.order_number]).toEqual([200, first.body.order_number]);
  });

  it('may be corrected with the same key, since the service stores only successes', async () => {
    const poor = await newAccount();
    const key = newKey();
    expect((await order(key, { service_code: 'nothing' }, poor.rest)).body.code).toBe('unknown_service_code');
    expect((await order(key, { hostname: '!' }, poor.rest)).body.code).toBe('validation_failed');
    expect((await order(key, {}, poor.rest)).status).toBe(402);
    await poor.fund(30);
    const paid = await order(key, {}, poor.rest);
    expect([paid.status, paid.headers.get('idempotency-replayed')]).toEqual([200, null]);
  });

  it('shares its key with no other account, method or path', async () => {
    const other = await newAccount();
    const key = newKey();
    const [mine, theirs] = [account.rest, other.rest];
    const body = { name: 'k', scope: 'read' };
    const first = await mine('POST', '/v1/auth/api-keys', body, withKey(key));
    const foreign = await theirs('POST', '/v1/auth/api-keys', body, withKey(key));
    expect(foreign.body.key_id).not.toBe(first.body.key_id);
    for (const id of [first.body.key_id, first.body.key_id]) {
      const revoked = await mine('DELETE', `/v1/auth/api-keys/${id}`, undefined, withKey(key));
      expect([revoked.status, revoked.body.status]).toEqual([200, 'revoked']);
    }
    const next = await mine('POST', '/v1/auth/api-keys', body, withKey(newKey()));
    const deleted = await mine('DELETE', `/v1/auth/api-keys/${next.body.key_id}`, undefined, withKey(key));
    expect([deleted.body.key_id, deleted.headers.get('idempotency-replayed')]).toEqual([next.body.key_id, null]);
  });

  it('shows a credential with limits no credential that another one created', async () => {
    const { rest } = await newAccount();
    const limited = async () => {
      const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'l', scope: 'full', spend_limit_usd: 1 });
      return restClient(freehold.publicUrl, body.plaintext);
    };
    const [one, other] = [await limited(), await limited()];
    const create = (by: typeof rest) =>
      by('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' }, withKey('guessable'));
    const first = await create(one);
    const codes = [await create(rest), await create(other)].map(({ status, body }) => [status, body.code]);
    expect(codes).toEqual(Array(2).fill([422, 'idempotency_key_reused']));
    const again = await create(one);
    expect([again.body.plaintext, again.headers.get('idempotency-replayed')]).toEqual([first.body.plaintext, 'true']);
  });

  it('without a credential counts with its body: a repeated registration makes one account', async () => {
    const key = newKey();
    const register = (email: string) =>
      anonymous('POST', '/v1/auth/register', { email, password: 'a heron on the roof' }, withKey(key));
    const first = await register('once@example.org');
    const again = await register('once@example.org');
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect((await register('twice@example.org')).body.account.id).not.toBe(first.body.account.id);
    const without = await anonymous('POST', '/v1/auth/register', {
      email: 'once@example.org',
      password: 'another heron',
    });
    expect(without.body.code).toBe('email_taken');
  });

  it('is refused if the key is invalid', async () => {
    for (const key of ['', 'two words', 'x'.repeat(256), 'schlüssel'.replace('ü', '\u00fc')]) {
      const { status, body } = await order(key);
      expect([key, status, body.code]).toEqual([key, 400, 'invalid_header']);
    }
    expect((await order('x'.repeat(255), { service_code: 'no' })).body.code).toBe('unknown_service_code');
    expect((await anonymous('POST', '/v1/servers', {}, withKey(''))).status).toBe(401);
    expect((await account.rest('GET', '/v1/account', undefined, withKey('two words'))).status).toBe(200);
  });

  it('has another effect after a day', async () => {
    const key = newKey();
    const first = await order(key);
    const [stored] = await db.query<{ hours: number }>(
      `select max(extract(epoch from expires_at - now())::int / 3600) as hours from idempotency_key`,
    );
    expect(stored!.hours).toBeGreaterThanOrEqual(23);
    await db.query(`update idempotency_key set expires_at = now() - interval '1 second'`);
    const later = await order(key);
    expect(later.body.order_number).not.toBe(first.body.order_number);
  });
});

describe('Idempotency keys over several processes', () => {
  it('have one effect: all processes return the answer of the first', async () => {
    const { accessToken } = account;
    const third = await startFreehold({ DATABASE_URL: url, ROLES: 'api' });
    const [key, before] = [newKey(), await servers()];
    const clients = [restClient(second.publicUrl, accessToken), restClient(third.publicUrl, accessToken)];
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => order(key, {}, clients[i % 2]!)));
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
    expect(new Set(answers.map(({ body }) => body.order_number)).size).toBe(1);
    expect(await servers()).toBe(before + 1);
  });

  it('make a repeated request wait five seconds at most for the running one', async () => {
    const other = await Database.open(url);
    const request = { accountId: 'acct_x', method: 'POST', path: '/v1/x', key: newKey(), input: '{}' };
    const [started, finished] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const running = new IdempotencyKeys(other, VAULT).once(request, async (requestDb) => {
      await requestDb.transaction((tx) => tx.query('select 1'));
      started.resolve();
      await finished.promise;
      return '"done"';
    });
    await started.promise;
    const late = new IdempotencyKeys(db, VAULT);
    const began = Date.now();
    await expect(late.once(request, async () => '"never"')).rejects.toMatchObject({
      code: 'idempotency_in_progress',
      extras: { retryAfter: 1 },
    });
    expect(Date.now() - began).toBeGreaterThan(4_500);
    finished.resolve();
    expect(await running).toMatchObject({ answer: '"done"', replayed: false });
    expect(await late.once(request, async () => '"never"')).toMatchObject({ answer: '"done"', replayed: true });
    await other.close();
  });

  it('keep the committed changes of a refused request, and none that it rolled back', async () => {
    const request = { accountId: 'acct_y', method: 'POST', path: '/v1/y', key: newKey(), input: '{}' };
    const idempotency = new IdempotencyKeys(db, VAULT);
    await asSuperuser(db, 'create table note (text text); grant all on note to public');
    const note = (text: string) => `insert into note values ('${text}')`;
    const refused = idempotency.once(request, async (requestDb) => {
      await requestDb.transaction((tx) => tx.query(note('revoked')));
      await requestDb
        .transaction((tx) => tx.query(note('lost')).then(() => Promise.reject(new Error('no'))))
        .catch(() => {});
      expect(await requestDb.query('select text from note')).toEqual([{ text: 'revoked' }]);
      expect(await db.query('select text from note')).toEqual([]);
      throw new ApiError('validation_failed', 'refused');
    });
    await expect(refused).rejects.toThrow('refused');
    expect(await db.query('select text from note')).toEqual([{ text: 'revoked' }]);
    expect(await idempotency.once(request, async () => '"now"')).toMatchObject({ answer: '"now"', replayed: false });
    await asSuperuser(db, 'drop table note');
  });

  it('keep no change of a request that ends with a fault, so that a repeat has its effect once', async () => {
    const request = { accountId: 'acct_z', method: 'POST', path: '/v1/z', key: newKey(), input: '{}' };
    const idempotency = new IdempotencyKeys(db, VAULT);
    await asSuperuser(db, 'create table effect (text text); grant all on effect to public');
    const attempt = (fault?: Error) =>
      idempotency.once(request, async (requestDb) => {
        await requestDb.transaction((tx) => tx.query(`insert into effect values ('done')`));
        if (fault) throw fault;
        return '"done"';
      });
    await expect(attempt(new Error('The answer cannot be rendered.'))).rejects.toThrow('rendered');
    expect(await attempt()).toMatchObject({ replayed: false });
    expect(await db.query('select text from effect')).toEqual([{ text: 'done' }]);
    await asSuperuser(db, 'drop table effect');
  });

  it('are deleted after they expire', async () => {
    await db.query(`update idempotency_key set expires_at = now() - interval '1 second'`);
    await new IdempotencyKeys(db, VAULT).sweep();
    expect(await db.query('select from idempotency_key')).toEqual([]);
  });
});

it('A call to the outside fails once the request has changed something, and again passes after its answer', async () => {
  const keyed = new IdempotencyKeys(db, VAULT);
  const request = { accountId: account.id, owner: null, method: 'POST', path: '/v1/x', input: null };
  const once = (key: string, work: Parameters<typeof keyed.once>[1]) =>
    keyed.once({ ...request, key, hasPassword: false, code: undefined }, work);
  let late: Promise<void> | undefined;
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  await once(newKey(), async (db) => {
    beforeOutsideCall();
    late = answered.then(beforeOutsideCall);
    await db.transaction(async () => {});
    return '{}';
  });
  answer();
  await late;
  const failed = once(newKey(), async (db) => {
    await db.transaction(async () => {});
    beforeOutsideCall();
    return '{}';
  });
  await expect(failed).rejects.toThrow('called the outside within its transaction');
});
