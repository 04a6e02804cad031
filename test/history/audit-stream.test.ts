/** The limits of the audit log as JSON Lines. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { eventually, type Freehold, startFreehold } from '../setup/freehold.ts';
import { queriesOf } from '../setup/queries.ts';
import { restClient } from '../setup/spawn.ts';

const freehold = await startFreehold({ ROLES: 'api' });
const limited = await startFreehold({ ROLES: 'api', RATE_LIMIT_KEY_PER_MINUTE: '6' });
const shortHour = await startFreehold({ ROLES: 'api', RATE_LIMIT_KEY_PER_HOUR: '6' });
/** More than the buffers of a connection hold. */
const ENTRIES = 60_000;
const LOG = '/v1/account/audit-log?action=server.updated';
const LINES = { accept: 'application/x-ndjson' };

/** A new key of an account with so many entries. */
async function withEntries({ db, newAccount, publicUrl }: Freehold, entries: number) {
  const account = await newAccount();
  const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'reader', scope: 'read' });
  await db.query(
    `insert into audit_entry (id, account_id, action, actor_type)
      select 'aud_' || left(md5(random()::text), 26), $1, 'server.updated', 'system' from generate_series(1, $2::int)`,
    [account.id, entries],
  );
  const headers = { ...LINES, authorization: `Bearer ${key.plaintext}` };
  const open = async (method = 'GET') => {
    const request = get(publicUrl + LOG, { method, headers });
    onTestFinished(() => void request.destroy());
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  };
  return { ...account, key, asKey: restClient(publicUrl, key.plaintext), open };
}

/** Counts the lines as they come. */
function counted(response: IncomingMessage) {
  const seen = { lines: 0, ended: false, broken: false };
  response.on('data', (chunk) => (seen.lines += String(chunk).split('\n').length - 1));
  response.on('end', () => (seen.ended = true)).on('error', () => (seen.broken = true));
  return seen;
}

it('ends before the last page if the owner revokes the key meanwhile', async () => {
  const { rest, key, open } = await withEntries(freehold, ENTRIES);
  const response = await open();
  await once(response, 'readable');
  expect((await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`)).status).toBe(200);
  let lines = 0;
  try {
    for await (const chunk of response) lines += String(chunk).split('\n').length - 1;
  } catch {
    // The service ends the connection, so that the reader does not take a part for the whole.
  }
  expect(lines).toBeGreaterThan(0);
  expect(lines).toBeLessThan(ENTRIES);
});

it('counts each page as a call, and waits for the next call without an error', async () => {
  const { open, asKey } = await withEntries(limited, 1500);
  const seen = counted(await open());
  await eventually(async () => seen.lines === 1200);
  await sleep(500);
  expect(seen).toEqual({ lines: 1200, ended: false, broken: false });
  expect((await asKey('GET', '/v1/account')).body.code).toBe('rate_limited');
});

it('breaks off if the next call is far, so that its reader does not take a part for the whole', async () => {
  const { open } = await withEntries(shortHour, 1500);
  const seen = counted(await open());
  await eventually(async () => seen.ended || seen.broken);
  expect(seen).toEqual({ lines: 1200, ended: false, broken: true });
});

it('comes at most twice at once for an account, until one ends', async () => {
  const { open, rest } = await withEntries(freehold, ENTRIES);
  const [first] = [await open(), await open()];
  const refused = await rest('GET', LOG, undefined, LINES);
  expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
  expect((await rest('GET', LOG)).status).toBe(200);
  first!.destroy();
  await eventually(async () => (await open()).statusCode === 200);
});

it('is read only as far as its reader takes it, and by HEAD one page', async () => {
  const { open } = await withEntries(freehold, ENTRIES);
  const reads = async (method: string) => {
    const queries = await queriesOf(freehold.db, async () => {
      await open(method);
      await sleep(1000);
    });
    return queries.filter(({ text }) => text.includes('from audit_entry')).length;
  };
  expect(await reads('HEAD')).toBe(1);
  expect(await reads('GET')).toBeLessThan(ENTRIES / 200);
});
