import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { envelope, type Headers, INITIALIZE, modern, of2025, rawClient, rpc } from './raw-client.ts';

const freehold = await startFreehold();
const url = `${freehold.publicUrl}/mcp`;
const [alice, bob] = [await freehold.newAccount(), await freehold.newAccount()];
const { send, outcome, usual } = rawClient(url, alice.accessToken);

describe('A session', () => {
  const begin = async (credential = alice.accessToken) => {
    const authorization = `Bearer ${credential}`;
    const { session } = await send({ headers: { authorization }, body: rpc('initialize', INITIALIZE) });
    return { authorization, 'mcp-session-id': session!, ...of2025('2025-11-25') };
  };
  const ping = (headers: Headers, without: string[] = []) => outcome({ headers, body: rpc('ping'), without });
  const NONE = [404, [null, -32001]];

  it('is unknown under a forged id, or with another credential', async () => {
    const headers = await begin();
    const id = headers['mcp-session-id'];
    const last = id.endsWith('A') ? 'B' : 'A';
    const forged = ['', 'x', '..', 'a.b.c', "' or 1=1", '%00', 'x'.repeat(5_000), `${id}x`, id.slice(0, -1)];
    for (const one of [...forged, id.slice(0, -1) + last, `x${id}`, id.replace('.-.', '.a.'), `${id}.${id}`])
      expect([one, await ping({ ...headers, 'mcp-session-id': one })]).toEqual([one, NONE]);
    expect(await ping({ ...headers, authorization: `Bearer ${bob.accessToken}` })).toEqual(NONE);
    expect(await ping(headers, ['authorization'])).toEqual(NONE);
    const theirs = { ...headers, authorization: `Bearer ${bob.accessToken}` };
    for (const method of ['GET', 'DELETE']) expect(await outcome({ method, headers: theirs })).toEqual(NONE);
    expect(await ping(headers)).toEqual([200, 1]);
  });

  it('ends once, with or without a body and its type, and stays ended', async () => {
    for (const without of [[], ['content-type']]) {
      const headers = await begin();
      expect(await ping(headers)).toEqual([200, 1]);
      expect(await outcome({ method: 'DELETE', headers, without })).toEqual([200]);
      expect(await ping(headers)).toEqual(NONE);
      for (const method of ['GET', 'DELETE']) expect(await outcome({ method, headers })).toEqual(NONE);
    }
  });

  it('begins once, keeps to known revisions, and refuses answers for which no call waits', async () => {
    const headers = await begin();
    expect(await outcome({ headers, body: rpc('initialize', INITIALIZE) })).toEqual([400, [null, -32600]]);
    expect(await ping({ ...headers, ...of2025('1999-01-01') })).toEqual([400, [null, -32000]]);
    for (const body of [
      { jsonrpc: '2.0', id: 0, result: {} },
      { jsonrpc: '2.0', id: 'x', error: { code: 1, message: '' } },
    ])
      expect(await outcome({ headers, body })).toEqual([400, [null, -32600]]);
    expect(await outcome({ headers, body: { jsonrpc: '2.0', result: {} } })).toEqual([400, [null, -32600]]);
    expect(await ping(headers)).toEqual([200, 1]);
  });

  it('has one stream of updates, which the client must accept', async () => {
    const headers = { ...usual, ...(await begin()) };
    expect(await outcome({ method: 'GET', headers: { ...headers, accept: 'application/json' } })).toEqual([
      406,
      [null, -32000],
    ]);
    const gone = new AbortController();
    const stream = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' }, signal: gone.signal });
    expect(stream.status).toBe(200);
    expect(await outcome({ method: 'GET', headers })).toEqual([409, [null, -32000]]);
    gone.abort();
  });

  it('is required for all methods but POST', async () => {
    for (const method of ['GET', 'DELETE']) expect(await outcome({ method })).toEqual([405, [null, -32000]]);
    const body = rpc('tools/list', envelope());
    const headers = { ...modern('tools/list'), 'mcp-session-id': 'of another version' };
    expect(await outcome({ headers, body })).toEqual([200, 1]);
  });
});
