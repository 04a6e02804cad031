/** Mass registration needs work: over REST, OAuth and MCP, and in all processes together. */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { sweepChallenges } from '../../entities/accounts/registration.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { startFreehold } from '../setup/freehold.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';

const folder = newFolder();
atEnd(() => removeFolder(folder));
const solver = join(folder, 'solve.mjs');
const page = readFileSync('docs/use/api.md', 'utf8');
writeFileSync(solver, page.slice(page.indexOf('## Proof of work')).match(/```js\n([\s\S]+?)```/)![1]!);
/** Solves a challenge by the documented code. */
const solve = (challenge: string) => execFileSync(process.execPath, [solver, challenge], { encoding: 'utf8' }).trim();

/** A number that does not solve the challenge. One in 256 does. */
const unsolved = (challenge: string) =>
  [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `${challenge}:${n}`).find((text) => hash('sha256', text, 'buffer')[0] !== 0)!;

const environment = {
  DATABASE_URL: await newDatabaseUrl(),
  SECRET_KEY: Buffer.alloc(32, 9).toString('base64'),
  REGISTRATIONS_PER_MINUTE: '3',
  REGISTRATION_PROOF_BITS: '8',
};
const [first, second] = [await startFreehold(environment), await startFreehold({ ...environment, ROLES: 'api' })];
const { db } = first;

let people = 0;
const person = (more: object = {}) => ({ email: `p${++people}@example.org`, password: 'a heron on the roof', ...more });
const register = (more: object = {}, service = first) => service.anonymous('POST', '/v1/auth/register', person(more));
/** Moves the accounts to an earlier minute. */
const quiet = () => db.query(`update account set created_at = created_at - interval '1 hour'`);
async function challengeOf(more: object = {}): Promise<string> {
  const { status, body } = await register(more);
  expect([status, body.code, body.retryable]).toEqual([422, 'proof_of_work_required', true]);
  return body.challenge;
}

beforeEach(async () => {
  await quiet();
  for (let i = 0; i < 3; i++) expect((await register({}, i % 2 ? first : second)).status).toBe(200);
});

describe('Registration above the rate', () => {
  it('needs a proof of work, which the documented solver finds', async () => {
    const proof_of_work = solve(await challengeOf());
    expect((await register({ proof_of_work }, second)).status).toBe(200);
  });

  it('needs none again when a minute has passed', async () => {
    await challengeOf();
    await quiet();
    expect((await register()).status).toBe(200);
  });

  it('takes each proof once, in all processes, even when many send it at once', async () => {
    const proof_of_work = solve(await challengeOf());
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => register({ proof_of_work }, i % 2 ? first : second)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { body } of answers.filter(({ status }) => status !== 200))
      expect(body).toMatchObject({ code: 'proof_of_work_required', challenge: expect.any(String) });
  });

  it('refuses a wrong number, an easier challenge, another signature and a proof that has ended', async () => {
    const challenge = await challengeOf();
    const parts = challenge.split(':');
    const solved = solve(challenge);
    const wrong = [
      unsolved(challenge),
      challenge,
      'nonsense',
      `${[parts[0], '0', ...parts.slice(2)].join(':')}:1`,
      solved.replace(parts[4]!, Buffer.alloc(32).toString('base64url')),
      solved.replace(parts[2]!, String(Number(parts[2]) + 3600)),
    ];
    for (const proof_of_work of wrong)
      expect([proof_of_work, (await register({ proof_of_work })).body.code]).toEqual([
        proof_of_work,
        'proof_of_work_required',
      ]);
    expect((await register({ proof_of_work: solved })).status).toBe(200);
  });

  it('is for OAuth clients without a credential and for agents, too', async () => {
    const client = { client_name: 'Deployer' };
    const refused = await first.anonymous('POST', '/v1/oauth/register', client);
    expect([refused.status, refused.body.code]).toEqual([422, 'proof_of_work_required']);
    const proof_of_work = solve(refused.body.challenge);
    expect((await first.anonymous('POST', '/v1/oauth/register', { ...client, proof_of_work })).status).toBe(201);
    const call = async (args: object) => {
      const params = { name: 'register_account', arguments: args };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const text = await (await fetch(`${first.publicUrl}/mcp`, { method: 'POST', headers, body })).text();
      return JSON.parse(text.replace(/^[\s\S]*?(?=\{)/, '')).result;
    };
    const { isError, structuredContent } = await call(person());
    expect([isError, structuredContent.code]).toEqual([true, 'proof_of_work_required']);
    const again = await call(person({ proof_of_work: solve(structuredContent.challenge) }));
    expect(again.structuredContent.tokens.access_token).toMatch(/^svc_at_/);
  });

  it('takes no challenge from before a steep rise', async () => {
    const proof_of_work = solve(await challengeOf());
    await db.query(`insert into account (id, kind) select 'acct_s' || n, 'AGENT' from generate_series(1, 24) as n`);
    const { status, body } = await register({ proof_of_work });
    expect([status, body.challenge.split(':')[1]]).toEqual([422, '11']);
    expect((await register({ proof_of_work: solve(body.challenge) })).status).toBe(200);
  });

  it('is harder when accounts come faster', async () => {
    expect((await challengeOf()).split(':')[1]).toBe('8');
    await db.query(`insert into account (id, kind) select 'acct_' || n, 'AGENT' from generate_series(1, 12) as n`);
    expect((await challengeOf()).split(':')[1]).toBe('10');
  });

  it('adds no more accounts when many people, or many clients, register at once in two processes', async () => {
    const asClient = (_: object, { anonymous }: typeof first) => anonymous('POST', '/v1/oauth/register', {});
    for (const one of [register, asClient]) {
      await quiet();
      const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => one({}, i % 2 ? first : second)));
      expect(answers.filter(({ status }) => status < 300)).toHaveLength(3);
      for (const { status, body } of answers.filter(({ status }) => status >= 300))
        expect([status, body.code]).toEqual([422, 'proof_of_work_required']);
    }
  });
});

describe('A client with a credential', () => {
  it('needs no proof of work', async () => {
    const { body } = await first.anonymous(
      'POST',
      '/v1/auth/register',
      person({ proof_of_work: solve(await challengeOf()) }),
    );
    const headers = { authorization: `Bearer ${body.tokens.access_token}` };
    expect((await first.anonymous('POST', '/v1/oauth/register', { client_name: 'Mine' }, headers)).status).toBe(201);
  });
});

describe('An onion service', () => {
  const name = `${'a'.repeat(56)}.onion`;
  /** Registers an OAuth client under this host. `fetch` would replace the header. */
  const ask = (publicUrl: string, host: string) =>
    new Promise<{ status: number; code: string }>((done, fail) => {
      const headers = { host, 'content-type': 'application/json' };
      const sent = request(`${publicUrl}/v1/oauth/register`, { method: 'POST', headers }, async (reply) => {
        const text = Buffer.concat(await reply.toArray()).toString();
        done({ status: reply.statusCode!, code: JSON.parse(text).code });
      });
      sent.on('error', fail).end('{}');
    });

  it('always wants a proof of work, under the host of the request and in any case of letters', async () => {
    await quiet();
    for (const host of [name, `${name}:80`, `${name.toUpperCase()}.`])
      expect([host, await ask(first.publicUrl, host)]).toEqual([host, { status: 422, code: 'proof_of_work_required' }]);
    expect((await ask(first.publicUrl, 'freehold.example')).status).toBe(201);
  });
});

describe('Solved challenges', () => {
  it('are forgotten when they have ended', async () => {
    expect((await register({ proof_of_work: solve(await challengeOf()) })).status).toBe(200);
    const rows = () => db.query('select from solved_challenge');
    await sweepChallenges(db);
    expect((await rows()).length).toBeGreaterThan(0);
    await db.query(`update solved_challenge set expires_at = now() - interval '1 second'`);
    await sweepChallenges(db);
    expect(await rows()).toEqual([]);
  });
});
