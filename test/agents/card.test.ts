/** The card of an agent: the keys that it names, and the consequences for its entry. The tests move time in the database. */
import { generateKeyPairSync } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { Agent } from '../../entities/agents/agent.ts';
import { ed25519Key, thumbprint } from '../../entities/agents/agent-key.ts';
import { newId } from '../../entities/ids.ts';
import { AGENT_LANE } from '../../entities/tasks/lane.ts';
import { cardUrl, namedKeys } from '../../provisioning/agents/card.ts';
import { truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { startReceiver } from '../setup/receiver.ts';
import { openShop } from '../setup/shop.ts';

const newKey = () => generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }) as { x: string };
const KEY = newKey();
const BYTES = Buffer.from(KEY.x, 'base64url');
const THUMBPRINT = thumbprint(BYTES);
const header = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('A card', () => {
  it.each([
    ['a JWK', { publicKey: KEY }],
    ['a JWK as text', { publicKey: JSON.stringify(KEY) }],
    ['base64', { publicKey: BYTES.toString('base64') }],
    ['base64url, in snake case', { public_key: KEY.x }],
    ['a set of keys', { jwks: { keys: [newKey(), KEY] } }],
    ['the key of a signature', { signatures: [{ protected: header({ alg: 'EdDSA', jwk: KEY }), signature: 'x' }] }],
    ['the thumbprint of a signature', { signatures: [{ protected: header({ kid: THUMBPRINT }), signature: 'x' }] }],
  ])('names its key by %s', (_, card) => {
    expect(namedKeys(JSON.stringify({ name: 'Night owl', ...card }))).toContain(THUMBPRINT);
  });

  it.each([
    {},
    { publicKey: newKey() },
    { publicKey: { ...KEY, crv: 'X25519' } },
    { publicKey: { ...KEY, kty: 'EC', crv: 'P-256' } },
    { publicKey: [KEY] },
    { publicKey: null, jwks: [KEY], signatures: KEY },
    { jwks: { keys: [...Array.from({ length: 20 }, () => null), KEY] } },
    { signatures: [{ protected: THUMBPRINT }, { protected: header(THUMBPRINT) }, { header: { kid: THUMBPRINT } }, 7] },
    { description: THUMBPRINT, kid: THUMBPRINT },
  ])('does not name it by %j', (card) => {
    expect(namedKeys(JSON.stringify(card))).not.toContain(THUMBPRINT);
  });

  it.each(['', 'x', '[]', '7', 'null', `[${JSON.stringify({ publicKey: KEY })}]`, `${'['.repeat(60_000)}`])(
    'is none if it is %.20s',
    (text) => expect(namedKeys(text)).toBeUndefined(),
  );

  it('is below the path of its agent', () => {
    expect(cardUrl('https://a.example.org')).toBe('https://a.example.org/.well-known/agent-card.json');
    expect(cardUrl('https://a.example.org/owl/?q=1#x')).toBe('https://a.example.org/owl/.well-known/agent-card.json');
  });
});

describe('An entry', async () => {
  const { db, provisioning } = await openShop(atEnd, { allowCidrs: ['127.0.0.5/32'] });
  const worker = provisioning.newWorker();
  const receiver = await startReceiver(0, '127.0.0.5');
  atEnd(() => receiver.close());
  beforeEach(async () => {
    await truncate(db, 'task, agent, event, audit_entry');
    receiver.received.length = 0;
  });

  const answer = (card: unknown, status = 200) => {
    receiver.answer = (response) => void response.writeHead(status).end(JSON.stringify(card));
  };
  const NAMES = { publicKey: KEY };
  async function entry(url = `http://127.0.0.5:${receiver.port}/owl`) {
    const id = newId('agt');
    const row = { id, accountId: 'acct_owner', slug: id.slice(0, 30), name: 'Owl', description: 'x', url };
    await db.source.manager.insert(Agent, { ...row, status: 'LISTED', endpoints: [], skills: [], publicKey: BYTES });
    await db.transaction((tx) => provisioning.agents.verify(tx, row));
    await worker.drain(AGENT_LANE);
    return id;
  }
  const verified = async (id: string) => (await db.source.manager.findOneByOrFail(Agent, { id })).verified;
  const nextCheck = async () => {
    const [task] = await db.query<{ seconds: number }>(
      'select extract(epoch from run_at - now())::float8 as seconds from task',
    );
    await db.query('update task set run_at = now()');
    await worker.drain(AGENT_LANE);
    return task!.seconds;
  };
  const told = () =>
    db.query(`select event.data, audit_entry.actor_type as actor, audit_entry.action from event
      join audit_entry on resource_id = subject where event.type = 'agent.updated' order by event.id`);

  it('becomes verified by a card that names its key, with one event', async () => {
    answer(NAMES);
    const id = await entry();
    expect(await verified(id)).toBe(true);
    expect(await nextCheck()).toBeGreaterThan(20 * 3600);
    expect(await told()).toEqual([{ data: { verified: true }, actor: 'system', action: 'agent.updated' }]);
    expect(receiver.received).toHaveLength(2);
  });

  it('loses its verification as soon as the card names another key', async () => {
    answer(NAMES);
    const id = await entry();
    answer({ publicKey: newKey() });
    await nextCheck();
    expect([await verified(id), receiver.received.length]).toEqual([false, 2]);
    answer(NAMES);
    await nextCheck();
    expect(await verified(id)).toBe(true);
  });

  it('stays verified while its card is unreadable for a time, but not for long', async () => {
    answer(NAMES);
    const id = await entry();
    answer({}, 503);
    for (let tries = 1; tries <= 4; tries++) {
      await nextCheck();
      expect(await verified(id)).toBe(true);
    }
    await nextCheck();
    expect(await verified(id)).toBe(false);
    expect(await nextCheck()).toBeGreaterThan(20 * 3600);
    answer(NAMES);
    await nextCheck();
    expect(await verified(id)).toBe(true);
    answer({}, 404); // the count of tries starts again
    await nextCheck();
    expect(await verified(id)).toBe(true);
  });

  const large = { ...NAMES, description: 'x'.repeat(65 * 1024) };
  it.each<[string, (response: ServerResponse) => void]>([
    ['is larger than 64 KiB', (response) => void response.end(JSON.stringify(large))],
    ['never ends', (response) => void response.write(' '.repeat(70_000))],
    [
      'breaks off',
      (response) =>
        void response.writeHead(200, { 'content-length': 9999 }).write(JSON.stringify(NAMES), () => response.destroy()),
    ],
    [
      'is a redirect',
      (response) =>
        void response.writeHead(302, { location: `http://127.0.0.5:${receiver.port}/` }).end(JSON.stringify(NAMES)),
    ],
    ['is no JSON', (response) => void response.end('<html>')],
    [
      'is compressed',
      (response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(Buffer.from([0x1f, 0x8b, 8, 0])),
    ],
  ])('is not verified by a card that %s', async (_, respond) => {
    receiver.answer = respond;
    expect(await verified(await entry())).toBe(false);
    expect(receiver.received).toHaveLength(1);
  });

  it('is not checked without a key, or after its deletion', async () => {
    answer(NAMES);
    await entry();
    await db.query('update agent set public_key = null');
    await nextCheck();
    expect(await db.query('select from task')).toEqual([]);
    expect(receiver.received).toHaveLength(1);
  });

  it('takes no result from a check during which it changed', async () => {
    const other = Buffer.from(newKey().x, 'base64url');
    receiver.answer = (response) =>
      void db.query('update agent set public_key = $1', [other]).then(() => response.end(JSON.stringify(NAMES)));
    expect(await verified(await entry())).toBe(false);
    expect(ed25519Key(other.toString('base64'))).toEqual(other);
  });

  it('looks for no key in a long text, which a stranger may send', () => {
    const key = newKey().x;
    expect(ed25519Key(key)).toBeInstanceOf(Buffer);
    expect(ed25519Key(key + '='.repeat(1_000))).toBeUndefined();
  });
});
