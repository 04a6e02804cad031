import { createHash, createPublicKey, verify } from 'node:crypto';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { actOfOperator, asOwner, asSuperuser } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { anonymous, dataDir, db, newAccount, operator } = await startFreehold();
const CODES = ['CEASE', 'DURESS', 'GAG', 'RAID', 'SEIZE', 'SUBP', 'TRAP', 'WAR', 'XCRED', 'XOPERS'];

describe('The canary', () => {
  const PUBLISH =
    'mutation ($input: PublishCanaryInput!) { publishCanary(input: $input) { version status sha256 previousSha256 } }';
  const publish = async (input: object) => (await operator(PUBLISH, { input })).data.publishCanary;

  it('promises nothing before the first publication', async () => {
    const { body } = await anonymous('GET', '/v1/transparency/canary');
    expect(body).toMatchObject({ version: '0', status: 'expired', codes: [], signed_text: null });
    expect(body.statement).toContain('has not published');
  });

  it('is valid with all codes until it expires, and names the digest of its predecessor', async () => {
    const first = await publish({ statement: 'All is well.', codes: CODES });
    expect(first).toMatchObject({ version: '1', status: 'VALID', previousSha256: null });
    const signedText = '-----BEGIN PGP SIGNED MESSAGE-----\nAll is well.';
    const second = await publish({ statement: 'All is well.', codes: CODES, signedText });
    expect(second).toMatchObject({
      version: '2',
      previousSha256: first.sha256,
      sha256: createHash('sha256').update(signedText).digest('hex'),
    });
    const { body } = await anonymous('GET', '/v1/transparency/canary');
    expect(body).toMatchObject({ version: '2', status: 'valid', signed_text: signedText, codes: CODES });
    expect(new Date(body.expires_at).getTime() - new Date(body.issued_at).getTime()).toBe(35 * 24 * 3_600_000);
  });

  it('is triggered without a code, and expired after its time', async () => {
    expect((await publish({ statement: 'Well.', codes: CODES.filter((code) => code !== 'GAG') })).status).toBe(
      'TRIGGERED',
    );
    await publish({ statement: 'Well.', codes: CODES });
    await asSuperuser(db, `update canary set expires_at = now() where version = (select max(version) from canary)`);
    actOfOperator(db);
    expect((await anonymous('GET', '/v1/transparency/canary')).body.status).toBe('expired');
  });

  it.each([
    ['expiresAt', 'in the past', () => '2026-01-01T00:00:00Z'],
    ['expiresAt', 'after 35 days', () => new Date(Date.now() + 36 * 24 * 3_600_000).toISOString()],
    ['signedText', 'without a signature', () => 'All is well.'],
    ['publicKey', 'that is private', () => '-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nxVgEZ'],
  ])('refuses %s %s', async (field, _what, value) => {
    const { errors } = await operator(PUBLISH, { input: { statement: 'Well.', codes: CODES, [field]: value() } });
    expect(errors[0].extensions).toMatchObject({ code: 'validation_failed', errors: [{ field }] });
  });

  it('cannot be changed later, and only the operator publishes', async () => {
    await expect(asOwner(db, `update canary set statement = 'other'`)).rejects.toThrow('append-only');
    const { errors } = await (await newAccount()).graphql(PUBLISH, { input: { statement: 'x', codes: CODES } });
    expect(errors[0].extensions.code).toBe('insufficient_scope');
    const audited = await db.query(
      `select action, actor_type from audit_entry where account_id = 'operator' and resource_type = 'canary'`,
    );
    expect(audited[0]).toEqual({ action: 'canary.updated', actorType: 'operator' });
  });
});

describe('The digest of the audit log', () => {
  const read = (query = '') => anonymous('GET', `/v1/transparency/audit-digest${query}`);

  it('is public for everybody to keep, with a text that proves itself and names no account', async () => {
    const { id } = await newAccount();
    await eventually(async () => (await read()).status === 200);
    await eventually(async () => (await db.query('select from audit_link where account_id = $1', [id])).length > 0);
    await asSuperuser(db, `update audit_signature set signed_at = signed_at - interval '2 days'`);
    await db.query(`update task set run_at = now() where subject = 'cron:audit-signature'`);
    await eventually(async () => (await read('?number=2')).status === 200);
    const { body } = await read('?number=2');
    expect(body).toMatchObject({
      ...{ number: 2, sha256: createHash('sha256').update(body.signed_text).digest('hex') },
      previous_sha256: (await read('?number=1')).body.sha256,
    });
    const x = Buffer.from(body.public_key, 'hex').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    expect(verify(null, Buffer.from(body.signed_text), key, Buffer.from(body.signature, 'hex'))).toBe(true);
    expect(JSON.stringify(body)).not.toMatch(/acct_|operator/);
    expect((await read()).body).toEqual(body);
  });

  it('stays the latest one after rows whose signature is junk', async () => {
    const { body } = await read();
    for (const [number, text] of [
      [body.number + 1, 'junk'],
      [body.number + 2, body.signed_text],
      [2n ** 63n - 1n, `${body.signed_text}\n`],
    ])
      await db.query(
        'insert into audit_signature (number, signed_text, public_key, signature) values ($1, $2, $3, $4)',
        [number, `${text}\n\n`, Buffer.from(body.public_key, 'hex'), Buffer.from(body.signature, 'hex')],
      );
    expect((await read()).body).toEqual(body);
    expect((await read(`?number=${body.number + 1}`)).body.code).toBe('not_found');
  });

  it('is not found under a number that the service has not signed', async () => {
    expect((await read('?number=999')).body.code).toBe('not_found');
    for (const number of ['0', '99999999999'])
      expect((await read(`?number=${number}`)).body.code).toBe('invalid_query');
  });
});

describe('Peering', () => {
  it('shows the publication of the operator', async () => {
    expect((await anonymous('GET', '/v1/transparency/peering')).body).toMatchObject({
      asn: null,
      name: 'Not published',
      exchanges: [],
    });
    const document = {
      asn: 64_500,
      name: 'Freehold',
      irrAsSet: 'AS-FREEHOLD',
      policy: 'open',
      policyUrl: null,
      nocEmail: 'noc@example.org',
      peeringdbUrl: null,
      infoPrefixes4: 10,
      infoPrefixes6: 5,
      exchanges: [
        {
          name: 'AMS-IX',
          city: 'Amsterdam',
          country: 'NL',
          speedMbps: 10_000,
          ipv4: '192.0.2.7',
          ipv6: null,
          isRsPeer: true,
          operational: true,
        },
      ],
      facilities: [{ name: 'Room 1', city: 'Amsterdam', country: 'NL' }],
    };
    const PUBLISH = 'mutation ($document: PeeringDocument!) { publishPeering(document: $document) { asn } }';
    expect((await operator(PUBLISH, { document: { ...document, asn: 'x' } })).errors).toBeTruthy();
    expect((await operator(PUBLISH, { document })).data.publishPeering.asn).toBe(64_500);
    const { body } = await anonymous('GET', '/v1/transparency/peering');
    expect(body).toMatchObject({
      asn: 64_500,
      irr_as_set: 'AS-FREEHOLD',
      exchanges: [{ name: 'AMS-IX', speed_mbps: 10_000, is_rs_peer: true }],
    });
  });
});

describe('The status', () => {
  const status = async () => {
    actOfOperator(db);
    return (await anonymous('GET', '/v1/transparency/status')).body;
  };
  const component = async (id: string) => (await status()).components.find((one: { id: string }) => one.id === id);

  it('names simulated parts, and reports that everything works', async () => {
    const body = await status();
    expect(body).toMatchObject({ indicator: 'none', incidents: [], scheduled_maintenances: [] });
    expect(body.components.map(({ id }: { id: string }) => id)).toEqual([
      'api',
      'database',
      'workers',
      'payments',
      'machines-ams',
      'machines-zrh',
      'machines-kef',
      'machines-buh',
    ]);
    expect((await component('machines-zrh')).name).toBe('Machines in Zürich (simulated)');
  });

  it('reports late work', async () => {
    const stuck = `insert into task (id, lane, process, subject, account_id, step, run_at) values ('task_stuck', 'nobody', 'x', 'x', 'x', 'x', now() - $1::interval)`;
    await db.query(stuck, ['5 minutes']);
    expect(await component('workers')).toMatchObject({ status: 'degraded_performance' });
    await db.query(`update task set run_at = now() - interval '1 hour' where id = 'task_stuck'`);
    expect(await status()).toMatchObject({ indicator: 'major' });
    // Silent receivers of customers make these lanes late, and so do the many top-ups that free accounts ask for.
    for (const lane of ['webhooks', 'webhooks-free', 'agents', 'agents-free', 'payments-free']) {
      await db.query(`update task set lane = $1 where id = 'task_stuck'`, [lane]);
      expect((await component('workers')).status).toBe('operational');
    }
    await db.query(`update task set lane = 'payments' where id = 'task_stuck'`);
    expect((await component('workers')).status).toBe('major_outage');
    await db.query(`delete from task where id = 'task_stuck'`);
    await eventually(async () => (await status()).indicator === 'none');
  });

  it('reports an unreachable driver, and its return', async () => {
    const look = () =>
      db.query(`update task set run_at = now() where subject = 'cron:driver-health' and leased_by is null`);
    const machines = join(dataDir, 'machines');
    renameSync(machines, `${machines}-away`);
    await eventually(async () => {
      await look();
      return (await component('machines-kef')).status === 'major_outage';
    });
    expect(await status()).toMatchObject({ indicator: 'major' });
    expect(await component('payments')).toMatchObject({ status: 'operational' });
    renameSync(`${machines}-away`, machines);
    await eventually(async () => {
      await look();
      return (await status()).indicator === 'none';
    });
  });

  it.each([
    ['MINOR', 'INVESTIGATING', 'minor'],
    ['MAJOR', 'IDENTIFIED', 'major'],
    ['CRITICAL', 'MONITORING', 'critical'],
    ['NONE', 'INVESTIGATING', 'none'],
  ])('is told of an incident that names no component: %s', async (impact, state, indicator) => {
    const input = { name: 'Routing', status: state, impact, components: [], body: 'We look into it.' };
    const PUBLISH = 'mutation ($input: PublishIncidentInput!) { publishIncident(input: $input) { id } }';
    const { data } = await operator(PUBLISH, { input });
    expect(await status()).toMatchObject({ indicator, incidents: [{ name: 'Routing' }] });
    const resolve = { id: data.publishIncident.id, input: { status: 'RESOLVED', body: 'It is over.' } };
    await operator(
      'mutation ($id: ID!, $input: UpdateIncidentInput!) { updateIncident(id: $id, input: $input) { id } }',
      resolve,
    );
    expect(await status()).toMatchObject({ indicator: 'none', incidents: [] });
  });

  it('shows incidents that the operator opens, updates and resolves', async () => {
    const input = {
      name: 'Power',
      status: 'INVESTIGATING',
      impact: 'MAJOR',
      components: ['machines-ams'],
      body: 'We look into it.',
    };
    const { data } = await operator(
      'mutation ($input: PublishIncidentInput!) { publishIncident(input: $input) { id } }',
      { input },
    );
    expect(await component('machines-ams')).toMatchObject({ status: 'partial_outage' });
    expect(await status()).toMatchObject({
      indicator: 'major',
      incidents: [{ name: 'Power', status: 'investigating', impact: 'major' }],
    });
    const UPDATE =
      'mutation ($id: ID!, $input: UpdateIncidentInput!) { updateIncident(id: $id, input: $input) { updates { body } resolvedAt } }';
    const resolved = await operator(UPDATE, {
      id: data.publishIncident.id,
      input: { status: 'RESOLVED', body: 'Power is back.' },
    });
    expect(resolved.data.updateIncident.updates).toHaveLength(2);
    const LISTED = `query ($open: Boolean, $cursor: Cursor) {
      incidents(open: $open, cursor: $cursor, limit: 1) { data { name } nextCursor } }`;
    const listed = async (given: object) => (await operator(LISTED, given)).data.incidents;
    expect((await listed({ open: true })).data).toEqual([]);
    const first = await listed({ open: false });
    expect(first.data).toEqual([{ name: 'Power' }]);
    expect((await listed({ open: false, cursor: first.nextCursor })).data).toHaveLength(1);
    expect(await status()).toMatchObject({ indicator: 'none', incidents: [] });
    expect(
      (await operator(UPDATE, { id: 'inc_nothing', input: { status: 'RESOLVED', body: 'x' } })).errors[0].extensions
        .code,
    ).toBe('not_found');
  });

  it('announces maintenances, which count after their start', async () => {
    const input = {
      name: 'New switch',
      status: 'SCHEDULED',
      impact: 'MAINTENANCE',
      components: ['machines-buh'],
      body: 'At night.',
    };
    const { data } = await operator(
      'mutation ($input: PublishIncidentInput!) { publishIncident(input: $input) { id } }',
      { input },
    );
    expect(await status()).toMatchObject({ indicator: 'none', scheduled_maintenances: [{ name: 'New switch' }] });
    const UPDATE =
      'mutation ($id: ID!, $input: UpdateIncidentInput!) { updateIncident(id: $id, input: $input) { id } }';
    await operator(UPDATE, { id: data.publishIncident.id, input: { status: 'IN_PROGRESS', body: 'Begun.' } });
    expect(await component('machines-buh')).toMatchObject({ status: 'under_maintenance' });
    expect(await status()).toMatchObject({
      indicator: 'minor',
      description: 'Parts of the service are under maintenance.',
    });
    await operator(UPDATE, { id: data.publishIncident.id, input: { status: 'COMPLETED', body: 'Done.' } });
    expect(await status()).toMatchObject({ indicator: 'none', scheduled_maintenances: [] });
  });
});
