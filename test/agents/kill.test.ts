/** The worker dies by kill -9 while it reads an agent's card, and another worker reads the card again. */
import { generateKeyPairSync } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';
import { newFolder, removeFolder, restClient, spawnService } from '../setup/spawn.ts';

it('the next worker repeats a check of a card whose worker died', async () => {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const DATABASE_URL = await newDatabaseUrl();
  const environment = { DATA_DIR: folder, DATABASE_URL, WEBHOOK_ALLOW_CIDRS: '127.0.0.6/32', LEASE_SECONDS: '1' };
  const db = await Database.open(DATABASE_URL);
  onTestFinished(() => db.close());
  const receiver = await startReceiver(0, '127.0.0.6');
  onTestFinished(() => receiver.close());
  receiver.answer = () => {};

  const api = await spawnService({ ...environment, ROLES: 'api' });
  onTestFinished(() => api.kill());
  const anonymous = restClient(api.url);
  const { body: registered } = await anonymous('POST', '/v1/auth/register', {
    email: 'owl@example.org',
    password: 'a heron on the roof',
  });
  const publicKey = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const published = await restClient(api.url, registered.tokens.access_token)('POST', '/v1/agents/directory', {
    ...{ slug: 'night-owl', name: 'Owl', description: 'Orders at night.', url: 'https://owl.example.org' },
    endpoints: [{ protocol: 'mcp', url: 'https://owl.example.org/mcp' }],
    public_key: publicKey.x,
  });
  expect(published.body).toMatchObject({ verified: false });
  // The service would not trust the receiver's certificate, and the API accepts only https URLs of agents.
  await db.query('update agent set url = $1', [`http://127.0.0.6:${receiver.port}`]);

  const worker = { ...environment, ROLES: 'worker' };
  const killed = await spawnService(worker);
  await eventually(async () => receiver.received.length > 0);
  await killed.kill();
  receiver.answer = (response) => void response.end(JSON.stringify({ publicKey }));
  const next = await spawnService(worker);
  onTestFinished(() => next.kill());
  await eventually(async () => (await anonymous('GET', '/v1/agents/directory')).body.data[0].verified);
  expect(receiver.received.length).toBeGreaterThan(1);
  const events = await db.query(`select data from event where type = 'agent.updated' order by id`);
  expect(events).toEqual([{ data: {} }, { data: { verified: true } }]);
});
