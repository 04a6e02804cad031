/** Two processes share a database while SECRET_KEY is replaced: each has the key of the other as its previous one. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { Vault } from '../../entities/secrets.ts';
import { IdempotencyKeys } from '../../resolvers/idempotency.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';
import { restClient } from '../setup/spawn.ts';

const [A, B] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const [OLD, NEW] = [A.toString('base64'), B.toString('base64')];
const ENVIRONMENT = {
  DATABASE_URL: await newDatabaseUrl(),
  REGISTRATIONS_PER_MINUTE: '3',
  REGISTRATION_PROOF_BITS: '1',
};
const services = [
  await startFreehold({ ...ENVIRONMENT, SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: OLD }),
  await startFreehold({ ...ENVIRONMENT, SECRET_KEY: OLD, SECRET_KEY_PREVIOUS: NEW, ROLES: 'api' }),
] as const;
const { db } = services[0];

it('A repeated request without a credential waits for its first at another process, and gets its answer', async () => {
  const request = { accountId: null, method: 'POST', path: '/v1/x', key: 'one', input: {} };
  const [ahead, behind] = [new IdempotencyKeys(db, new Vault(B, A)), new IdempotencyKeys(db, new Vault(A, B))];
  const [begun, committed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const late = behind.once(request, async (own) => {
    // The process has found no answer, and the other one commits before it claims the key.
    begun.resolve();
    await committed.promise;
    return own.transaction(async () => '"second"');
  });
  await begun.promise;
  const first = await ahead.once(request, (own) => own.transaction(async () => '"first"'));
  committed.resolve();
  expect(first).toMatchObject({ answer: '"first"', replayed: false });
  expect(await late).toMatchObject({ answer: '"first"', replayed: true });
});

it('A refresh token that comes four times at once with one key, at both processes, works once', async () => {
  const { email, password, accessToken } = await services[0].newAccount();
  const { body } = await services[0].anonymous('POST', '/v1/auth/login', { email, password });
  let refreshToken: string = body.tokens.refresh_token;
  const refresh = ({ publicUrl }: { publicUrl: string }, key: string) => {
    const input = { refresh_token: refreshToken };
    return restClient(publicUrl)('POST', '/v1/auth/token/refresh', input, { 'idempotency-key': key });
  };
  for (let round = 1; round <= 3; round++) {
    const answers = await Promise.all([0, 1, 0, 1].map((at) => refresh(services[at as 0 | 1], `round-${round}`)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(answers.map((answer) => answer.body.tokens.refresh_token)).size).toBe(1);
    refreshToken = answers[0]!.body.tokens.refresh_token;
  }
  expect((await restClient(services[0].publicUrl, accessToken)('GET', '/v1/account')).status).toBe(200);
});

/** Solves a challenge of at most 32 bits. */
function solved(challenge: string): string {
  const bits = Number(challenge.split(':')[1]);
  for (let number = 0; ; number++) {
    const proof = `${challenge}:${number}`;
    if (createHash('sha256').update(proof).digest().readUInt32BE() < 2 ** (32 - bits)) return proof;
  }
}

it('A proof of work counts at each process, whichever made the challenge', async () => {
  await db.query(`insert into account (id, kind) select 'acct_' || n, 'AGENT' from generate_series(1, 3) as n`);
  let people = 0;
  const register = (at: 0 | 1, more: object = {}) =>
    services[at].anonymous('POST', '/v1/auth/register', {
      email: `worker-${++people}@example.org`,
      password: 'a heron on the roof',
      ...more,
    });
  for (const [made, taken] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const { challenge } = (await register(made)).body;
    expect((await register(taken, { proof_of_work: solved(challenge) })).status).toBe(200);
  }
});
