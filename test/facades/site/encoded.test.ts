/** Texts that the site encodes once. */
import { gunzipSync } from 'node:zlib';
import fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { sendEncoded } from '../../../facades/site/encoded.ts';

const TEXT = 'A page without a secret. '.repeat(100);
const app = fastify();
const sent: unknown[] = [];
app.addHook('onSend', async (_request, _reply, payload) => void sent.push(payload));
app.get('/', async (request, reply) => sendEncoded(request, reply, TEXT, 'public'));
const get = (encoding?: string) =>
  app.inject({ url: '/', headers: encoding === undefined ? {} : { 'accept-encoding': encoding } });

describe('A text of the site', () => {
  it.each([
    ['gzip', 'gzip'],
    ['br;q=1.0, gzip;q=0.8', 'gzip'],
    ['*', 'gzip'],
    ['gzip;q=0, identity', undefined],
    ['gzip; q=0.000', undefined],
    ['br', undefined],
    [undefined, undefined],
  ])('is for a caller who accepts %s in the encoding %s', async (accepted, encoding) => {
    const { headers, rawPayload } = await get(accepted);
    expect([headers['content-encoding'], headers.vary]).toEqual([encoding, 'accept-encoding']);
    expect((encoding ? gunzipSync(rawPayload) : rawPayload).toString()).toContain(TEXT);
  });

  it('is encoded once for all callers', async () => {
    sent.length = 0;
    for (const encoding of ['gzip', 'br', 'gzip', 'br']) await get(encoding);
    expect(sent[0]).toBeInstanceOf(Buffer);
    expect([sent[2], sent[3]]).toEqual([sent[0], sent[1]]);
    expect(sent[2]).toBe(sent[0]);
    expect(sent[3]).toBe(sent[1]);
  });
});
