/** Sends bad bodies to every endpoint. Each answer is an error of the catalogue, never 5xx, and the service writes nothing. */
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode } from '../../../entities/errors.ts';
import { mintCredential } from '../../../entities/secrets.ts';
import { atEnd } from '../../setup/end.ts';
import { ALL_ENDPOINTS } from '../../setup/endpoints.ts';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';

const { db, newAccount, publicUrl } = await startFreehold({ ROLES: 'api' });
const JSON_TYPE = { 'content-type': 'application/json' };
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const deep = (open: string, close: string) => `${open.repeat(30_000)}1${close.repeat(30_000)}`;

const BODIES: [what: string, body: string | Buffer, headers?: Record<string, string>][] = [
  ['an object 30,000 deep', deep('{"a":', '}')],
  ['a list 30,000 deep', deep('[', ']')],
  ['more than 128 KiB', JSON.stringify({ name: 'x'.repeat(130 * 1024) })],
  ['a compressed body', gzipSync('{"name":"x"}'), { ...JSON_TYPE, 'content-encoding': 'gzip' }],
  ['an uncompressed body with content-encoding', '{"name":"x"}', { ...JSON_TYPE, 'content-encoding': 'gzip' }],
  ['another charset', '{"name":"x"}', { 'content-type': 'application/json; charset=utf-16' }],
  ['text/plain', '{"name":"x"}', { 'content-type': 'text/plain' }],
  ['no content type', Buffer.from('{"name":"x"}'), {}],
  ['an invalid content type', '{}', { 'content-type': ';;;' }],
  ['a multipart form', '--x--', { 'content-type': 'multipart/form-data; boundary=x' }],
  ['a form', 'name=x', FORM_TYPE],
  ['a form with a parameter twice', 'grant_type=a&grant_type=b&token=a&token=b', FORM_TYPE],
  [
    'a form of 200 parameters',
    new URLSearchParams(Array.from({ length: 200 }, (_, i) => [`n${i}`, '1'])).toString(),
    FORM_TYPE,
  ],
  ['a form that is not UTF-8', 'grant_type=%ff%fe&token=%ff', FORM_TYPE],
  ['a form with NUL', 'grant_type=%00&token=%00', FORM_TYPE],
  ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ['a byte order mark alone', Buffer.from([0xef, 0xbb, 0xbf])],
  ['U+0000 in names and values', '{"a\\u0000":"\\u0000","name":"\\u0000","token":"\\u0000","email":"\\u0000"}'],
  ['lone surrogates', '{"name":"\\ud800","token":"\\udfff","email":"\\ud800","a\\ud800":1}'],
  ['__proto__', '{"__proto__":{"scope":"full"},"constructor":{"prototype":{"scope":"full"}}}'],
  ['a name twice', '{"name":1,"name":2,"token":1,"token":2}'],
  ['numbers out of range', '{"amount_usd":1e999,"limit":-0,"name":1e-999}'],
  ['a string of 100,000 quotes', `{"name":"${'\\"'.repeat(40_000)}"}`],
  ['ten thousand names', JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`n${i}`, 1])))],
];

let account: TestAccount;
/** Rows of every table but the log of requests. */
const rowCounts = async () => {
  const tables = await db.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
      and relname not in ('audit_entry', 'audit_link', 'audit_unlinked', 'rate', 'login_tally', 'session', 'oauth_client', 'account', 'balance', 'event', 'task') order by 1`,
  );
  const counts = tables.map(async ({ name }) => [name, (await db.query(`select count(*)::int from ${name}`))[0]]);
  return Promise.all(counts);
};
let before: unknown;
beforeAll(async () => {
  account = await newAccount();
  before = await rowCounts();
});
atEnd(async () => {
  expect(await rowCounts()).toEqual(before);
  expect((await account.rest('GET', '/v1/account')).status).toBe(200);
});

/** RFC 7591 requires the service to ignore unknown members, so a body of unknown members is a valid registration. */
const MAY_SUCCEED = /^\/v1\/oauth\/(register|revoke|introspect)$/;

describe.each(ALL_ENDPOINTS.filter(([method]) => method === 'POST' || method === 'PATCH'))('%s %s', (method, path) => {
  it('refuses each bad body with a code of the catalogue', async () => {
    for (const [what, body, headers = JSON_TYPE] of BODIES) {
      const response = await fetch(publicUrl + path.replace(/\{\w+\}/g, 'x'), {
        method,
        headers: {
          authorization: `Bearer ${path === '/v1/oauth/revoke' ? mintCredential('at') : account.accessToken}`,
          ...headers,
        },
        body: typeof body === 'string' ? Buffer.from(body) : new Uint8Array(body),
      });
      const answer = (await response.json()) as { code: ErrorCode; request_id: string };
      if (MAY_SUCCEED.test(path) && response.ok) continue;
      expect([400, 401, 404, 422], `${what}: ${JSON.stringify(answer)}`).toContain(response.status);
      expect([what, ERRORS[answer.code][0]]).toEqual([what, response.status]);
      expect(answer.request_id).toBe(response.headers.get('x-request-id'));
    }
  });
});
