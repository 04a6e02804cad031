/** The settings of engines, by GraphQL. No worker reaches these engines. */
import { beforeAll, expect, it } from 'vitest';
import { CONTROLLER, OTHER_CERTIFICATE } from '../../setup/certificates.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();
// Otherwise VPS are simulated, and a real engine is refused.
beforeAll(() => db.query('update engine set simulated = false'));
atEnd(() => db.query('update engine set simulated = true'));

const FIELDS = 'name kinds region state endpoints project pool network serverCertificateSha256 seenAt images';
const ADD = `mutation ($input: AddEngineInput!) { addEngine(input: $input) { ${FIELDS} } }`;
const UPDATE = `mutation ($input: UpdateEngineInput!) { updateEngine(name: "e1", input: $input) { ${FIELDS} } }`;
const SOCKET = { region: 'zrh', endpoints: ['unix:/run/absent'] };
const { cert, key } = CONTROLLER;
const PAIR = { clientCertificate: cert, clientKey: key };
const add = (input: object) => operator(ADD, { input });

it('An engine is added, changed, drained and removed only by the operator, and its key stays secret', async () => {
  const https = { region: 'zrh', endpoints: ['https://10.0.0.1:8443'], serverCertificate: OTHER_CERTIFICATE, ...PAIR };
  const added = (await add({ name: 'e1', ...https, pool: 'machines', nameservers: ['9.9.9.9'] })).data.addEngine;
  expect(added).toMatchObject({
    ...{ name: 'e1', kinds: ['VPS'], region: 'zrh', state: 'ACTIVE', endpoints: ['https://10.0.0.1:8443'] },
    ...{ project: 'freehold', pool: 'machines', network: 'lxdbr0', seenAt: null, images: null },
    serverCertificateSha256: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/),
  });
  const [stored] = await db.query<{ row: string }>(
    `select to_jsonb(engine)::text as row from engine where name = 'e1'`,
  );
  expect(stored!.row).not.toContain('PRIVATE KEY');
  expect((await operator(UPDATE, { input: { network: 'br0' } })).data.updateEngine).toMatchObject({
    ...{ network: 'br0', pool: 'machines', endpoints: ['https://10.0.0.1:8443'] },
  });
  const act = async (mutation: string) =>
    (await operator(`mutation { ${mutation}(name: "e1") { state } }`)).data[mutation].state;
  expect([await act('drainEngine'), await act('drainEngine'), await act('activateEngine')]).toEqual([
    'DRAINED',
    'DRAINED',
    'ACTIVE',
  ]);
  const customer = await newAccount();
  for (const document of ['{ engines { name } }', 'mutation { removeEngine(name: "e1") { name } }'])
    expect((await customer.graphql(document)).errors[0].extensions.code).toBe('insufficient_scope');
  await act('removeEngine');
  const audit = await db.query(
    `select actor_type from audit_entry where account_id = 'operator' and action = 'engine.updated' and resource_id = 'e1'
      and actor_type <> 'system'`,
  );
  expect(audit).toEqual(Array(5).fill({ actorType: 'operator' }));
  expect((await operator('{ engines { name } }')).data.engines).toEqual([{ name: 'simulated' }]);
});

it('A worker looks at a new engine at once, and tells the operator what it found', async () => {
  await add({ name: 'silent', ...SOCKET });
  const found = async () => {
    const { data } = await operator(
      '{ operatorEvents(type: "engine.updated") { data { subject data } } engines { name trouble } }',
    );
    const { trouble } = data.engines.find(({ name }: { name: string }) => name === 'silent');
    return { trouble, told: data.operatorEvents.data[0] };
  };
  await expect
    .poll(found)
    .toEqual({ trouble: expect.any(String), told: { subject: 'silent', data: { looked: true } } });
  await operator('mutation { removeEngine(name: "silent") { name } }');
});

it.each([
  ['the name of a driver', { name: 'lxc', ...SOCKET }, 'validation_failed'],
  ['the name of another', { name: 'simulated', ...SOCKET }, 'validation_failed'],
  ['a region that does not exist', { name: 'e1', ...SOCKET, region: 'nowhere' }, 'unknown_region'],
  ['no endpoint', { name: 'e1', ...SOCKET, endpoints: [] }, 'validation_failed'],
  ['a URL with a path', { name: 'e1', ...SOCKET, endpoints: ['https://a/b'], ...PAIR }, 'validation_failed'],
  ['https without a certificate', { name: 'e1', ...SOCKET, endpoints: ['https://a:8443'] }, 'validation_failed'],
  ['a certificate without its key', { name: 'e1', ...SOCKET, clientCertificate: cert }, 'validation_failed'],
  [
    'the key of another certificate',
    { name: 'e1', ...SOCKET, clientCertificate: OTHER_CERTIFICATE, clientKey: key },
    'validation_failed',
  ],
  ['no certificate at all', { name: 'e1', ...SOCKET, serverCertificate: 'hello' }, 'validation_failed'],
])('An engine with %s is refused', async (_, input, code) => {
  expect((await add(input)).errors[0].extensions.code).toBe(code);
});

it('An engine is added once: another name or another text of its address does not hide it', async () => {
  const https = { region: 'zrh', serverCertificate: OTHER_CERTIFICATE, ...PAIR };
  const first = await add({ name: 'e1', ...https, endpoints: ['https://a:8443', 'https://b:8443/'] });
  expect(first.data.addEngine.endpoints).toEqual(['https://a:8443', 'https://b:8443']);
  const again = await add({ name: 'e2', ...https, endpoints: ['https://c:8443', 'https://B:8443'] });
  expect(again.errors[0]).toMatchObject({
    message: expect.stringContaining('e1'),
    extensions: { code: 'validation_failed' },
  });
  expect((await add({ name: 'e2', ...https, endpoints: ['https://B:8443'], project: 'other' })).errors).toBeUndefined();
  const update = await operator(UPDATE.replace('"e1"', '"e2"'), { input: { project: 'freehold' } });
  expect(update.errors[0].extensions.code).toBe('validation_failed');
  expect((await operator(UPDATE, { input: { network: 'br1' } })).errors).toBeUndefined();
  for (const name of ['e1', 'e2']) await operator(`mutation { removeEngine(name: "${name}") { name } }`);
});

it('An engine of the environment can be drained, but neither changed nor removed', async () => {
  const act = async (mutation: string) => operator(`mutation { ${mutation}(name: "simulated") { name state } }`);
  expect((await act('drainEngine')).data.drainEngine.state).toBe('DRAINED');
  expect((await act('activateEngine')).data.activateEngine.state).toBe('ACTIVE');
  expect((await act('removeEngine')).errors[0].extensions.code).toBe('validation_failed');
  expect((await operator('mutation { removeEngine(name: "none") { name } }')).errors[0].extensions.code).toBe(
    'not_found',
  );
});
