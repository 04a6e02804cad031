/** The open matters of the operator, which the service derives from other tables. */
import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { schema } from '../../schema/index.ts';
import { asSuperuser } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

interface Matter {
  kind: string;
  subject: string;
  since: string | null;
  severity: string;
  nextStep: string;
}
const matters = async (limit = 200): Promise<Matter[]> =>
  (await operator(`{ openMatters(limit: ${limit}) { kind subject since severity nextStep } }`)).data.openMatters;
const find = async (kind: string, subject?: string) =>
  (await matters()).find((matter) => matter.kind === kind && (!subject || matter.subject === subject));

/** Writes a task that no worker runs, because no worker has its lane. */
const addTask = (subject: string, more: { state: string; error: string }) =>
  db.query(
    `insert into task (id, lane, process, subject, account_id, step, state, error) values ($1, 'none', 'none', $2, '', 'start', $3, $4)`,
    [newId('task'), subject, more.state, more.error],
  );
async function addPayment(event: string): Promise<string> {
  const { id: accountId } = await newAccount();
  const id = newId('pay');
  await db.query(
    `insert into payment (id, mode, external_key, network, tx_id, position, coin, address, account_id, units, status, seen_at)
      values ($1, 'CRYPTO', $1, 'bitcoin', $1, 0, 'BTC', 'x', $2, '5', 'UNMATCHED', now())`,
    [id, accountId],
  );
  await db.query(`insert into event (id, account_id, type, subject, data) values ($1, 'operator', $2, $3, '{}')`, [
    newId('evt'),
    event,
    id,
  ]);
  return id;
}
async function addFinding(): Promise<string> {
  const id = newId('fnd');
  await db.query(
    `insert into finding (id, kind, driver, order_number, generation, detail) values ($1, 'ORPHAN', 'none', $1, 1, 'x')`,
    [id],
  );
  return id;
}
const publishCanary = async (days: number) => {
  const expiresAt = new Date(Date.now() + days * 24 * 3_600_000).toISOString();
  const input = `{statement: "All is well.", codes: [], expiresAt: "${expiresAt}"}`;
  const { errors } = await operator(`mutation { publishCanary(input: ${input}) { version } }`);
  expect(errors).toBeUndefined();
};

describe('An open matter', () => {
  it('is a finding, with its next step', async () => {
    const id = await addFinding();
    expect(await find('FINDING', id)).toMatchObject({
      severity: 'WARNING',
      nextStep: expect.stringMatching(/remove it/),
    });
    await db.query('update finding set resolved_at = now() where id = $1', [id]);
    expect(await find('FINDING', id)).toBeUndefined();
  });

  it('is a circuit breaker, until the operator closes it', async () => {
    await db.query(`insert into brake (driver, reason) values ('lxc', 'Ten machines vanished.')`);
    expect(await find('BRAKE', 'lxc')).toMatchObject({ severity: 'CRITICAL' });
    await operator('mutation { releaseBrake(engine: "lxc") { engine } }');
    expect(await find('BRAKE', 'lxc')).toBeUndefined();
  });

  it('is a task that is dead, or whose last attempt failed', async () => {
    await addTask('dead', { state: 'DEAD', error: 'It burnt.' });
    await addTask('failing', { state: 'READY', error: 'It smokes.' });
    expect(await find('TASK', 'dead')).toMatchObject({
      severity: 'CRITICAL',
      nextStep: expect.stringMatching(/retryTask/),
    });
    expect(await find('TASK', 'failing')).toMatchObject({ severity: 'WARNING' });
    await db.query(`delete from task where lane = 'none'`);
  });

  it.each([
    ['payment.unmatched', 'PAYMENT_UNMATCHED'],
    ['payment.held', 'PAYMENT_HELD'],
  ])('is a payment that waits for a decision: %s', async (event, kind) => {
    const id = await addPayment(event);
    expect(await find(kind, id)).toMatchObject({
      severity: 'WARNING',
      nextStep: expect.stringMatching(/assignPayment/),
    });
    await db.query(`update payment set status = 'WRITTEN_OFF' where id = $1`, [id]);
    expect(await find(kind, id)).toBeUndefined();
  });

  it('is a gateway with a warning', async () => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    // The fence keeps a worker from writing the task, and no worker has its lane.
    const set = (problem: string | null) =>
      db.query(
        `insert into task (id, lane, process, subject, account_id, step, data) values ($1, 'none', 'none', $2, '', 'start', $3)
          on conflict (subject) do update set lane = 'none', fence = task.fence + 1, data = excluded.data`,
        [newId('task'), body.order_number, JSON.stringify({ problem })],
      );
    await set('The node forgot an address.');
    expect(await find('GATEWAY')).toMatchObject({ severity: 'WARNING', nextStep: expect.stringContaining('forgot') });
    await set(null);
    expect(await find('GATEWAY')).toBeUndefined();
  });

  it('is a canary that was never published, when machines are real', async () => {
    expect(await find('CANARY')).toBeUndefined();
    await db.query(
      `insert into engine (name, kinds, needs_hosts, simulated, product, state)
       values ('osl', '{VPS}', true, false, 'LXD', 'DRAINED')`,
    );
    expect(await find('CANARY')).toEqual({
      ...{ kind: 'CANARY', subject: 'none', since: null, severity: 'NOTICE' },
      nextStep: expect.stringContaining('publishCanary'),
    });
    await publishCanary(30);
    expect(await find('CANARY')).toBeUndefined();
    await db.query(`delete from engine where name = 'osl'`);
  });

  it('is a canary in its last week, and one that has expired', async () => {
    await publishCanary(30);
    expect(await find('CANARY')).toBeUndefined();
    await publishCanary(5);
    expect(await find('CANARY')).toMatchObject({ severity: 'WARNING' });
    await asSuperuser(db, 'update canary set expires_at = now()');
    expect(await find('CANARY')).toMatchObject({ severity: 'CRITICAL' });
  });

  it('is a backup that is too old, or a service that never had one', async () => {
    expect(await find('BACKUP')).toBeUndefined();
    const age = (days: number) => asSuperuser(db, `update event set created_at = created_at - interval '${days} days'`);
    await age(8);
    expect(await find('BACKUP')).toMatchObject({
      ...{ subject: 'database', severity: 'WARNING', since: expect.any(String) },
      nextStep: expect.stringMatching(/heard of no backup yet.*noteBackup/),
    });
    const { data } = await operator('mutation { noteBackup { type subject } }');
    expect(data.noteBackup).toEqual({ type: 'backup.noted', subject: 'database' });
    expect(await find('BACKUP')).toBeUndefined();
    await age(6);
    expect(await find('BACKUP')).toBeUndefined();
    await age(2);
    expect(await find('BACKUP')).toMatchObject({ nextStep: expect.stringMatching(/last backup is of /) });
  });

  it('is a tier that is nearly sold out', async () => {
    const setStock = (total: number) =>
      operator(`mutation { setStock(region: "ams", serviceCode: "vps-1", total: ${total}) { free } }`);
    const account = await newAccount();
    await account.fund(30);
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'ams' });
    await setStock(3);
    expect(await find('CAPACITY', 'ams/vps-1')).toMatchObject({ severity: 'NOTICE' });
    await setStock(1);
    expect(await find('CAPACITY', 'ams/vps-1')).toMatchObject({ severity: 'WARNING' });
    // After a restore, the operator looks at the machines first.
    await db.query(`insert into brake (driver, reason, stops_orders) values ('simulated', 'A restore', true)`);
    expect(await find('CAPACITY', 'ams/vps-1')).toBeUndefined();
    await db.query('delete from brake');
    expect(await find('CAPACITY', 'ams/vps-1')).toBeDefined();
    await setStock(0);
    expect(await find('CAPACITY', 'ams/vps-1')).toBeUndefined();
  });

  it('is no tier that is nearly sold out while the operator does not offer it, or its region', async () => {
    await operator('mutation { setStock(region: "ams", serviceCode: "vps-2", total: 1) { free } }');
    const { rest, fund } = await newAccount();
    await fund(30);
    await rest('POST', '/v1/servers', { service_code: 'vps-2', region: 'ams' });
    const isTold = async () => Boolean(await find('CAPACITY', 'ams/vps-2'));
    for (const [withdraw, offer] of [
      ['withdrawTier(code: "vps-2")', 'offerTier(code: "vps-2")'],
      ['withdrawRegion(code: "ams")', 'offerRegion(code: "ams")'],
    ]) {
      expect(await isTold()).toBe(true);
      await operator(`mutation { ${withdraw} { offered } }`);
      expect(await isTold()).toBe(false);
      await operator(`mutation { ${offer} { offered } }`);
    }
  });

  it('is a job that somebody must do by hand', async () => {
    const id = newId('job');
    await db.query(
      `insert into manual_job (id, order_number, generation, action, change) values ($1, 'SRV-AAAAAAAAAA', 1, 'CREATE', '')`,
      [id],
    );
    expect(await find('MANUAL_JOB', id)).toMatchObject({ severity: 'WARNING' });
  });

  it('is a message of a customer, until the operator has read it', async () => {
    const { rest, id: accountId, fund } = await newAccount();
    await fund(30);
    const { body } = await rest('POST', '/v1/account/messages', { subject: 'Why?', body: 'It is off.' });
    expect(await find('MESSAGE', body.id)).toEqual({
      ...{ kind: 'MESSAGE', subject: body.id, since: body.created_at, severity: 'NOTICE' },
      nextStep: expect.stringMatching(/sendMessage/),
    });
    await eventually(async () => {
      const audited = await db.query(
        `select 1 from audit_entry where path = '/graphql#openMatters' and resource_id = $1`,
        [accountId],
      );
      return audited.length > 0;
    });
    await operator(`mutation { markMessageRead(id: "${body.id}") { id } }`);
    expect(await find('MESSAGE', body.id)).toBeUndefined();
  });

  it('is all messages together of accounts that never paid, behind those of customers', async () => {
    const strangers = [await newAccount(), await newAccount()];
    const sent = async ({ rest }: (typeof strangers)[number]) =>
      (await rest('POST', '/v1/account/messages', { subject: 'My order', body: 'x' })).body;
    for (const stranger of [...strangers, strangers[0]!]) await sent(stranger);
    const payer = await newAccount();
    await payer.topUp(30);
    const { id } = await sent(payer);
    const messages = (await matters()).filter(({ kind }) => kind === 'MESSAGE');
    expect(messages.map(({ subject }) => subject)).toEqual([id, 'unpaid']);
    expect(messages[1]).toMatchObject({
      severity: 'NOTICE',
      since: expect.any(String),
      nextStep: expect.stringMatching(/^Read the 3 messages of 2 accounts that never paid/),
    });
    const read = 'mutation ($id: ID!) { markMessagesRead(accountId: $id) }';
    for (const account of [...strangers, payer]) await operator(read, { id: account.id });
    expect(await find('MESSAGE')).toBeUndefined();
  });
});

describe('The list of open matters', () => {
  beforeAll(async () => {
    await addFinding();
    await addTask('dead', { state: 'DEAD', error: 'It burnt.' });
    const { rest, fund } = await newAccount();
    await fund(30);
    await rest('POST', '/v1/account/messages', { subject: 'Why?', body: 'It is off.' });
  });

  it('tells matters of unknown age before the oldest ones, so that no number of messages pushes them out', async () => {
    const { id, rest, fund } = await newAccount();
    await fund(30);
    await operator(`mutation { setStock(region: "ams", serviceCode: "vps-1", total: 3) { free } }`);
    await rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'ams' });
    await rest('POST', '/v1/account/messages', { subject: 'Why?', body: 'It is off.' });
    await db.query(`update message set created_at = '2020-01-01' where account_id = $1`, [id]);
    const notices = (await matters()).filter(({ severity }) => severity === 'NOTICE');
    const firstKnown = notices.findIndex(({ since }) => since !== null);
    expect(notices.slice(firstKnown).filter(({ since }) => since === null)).toEqual([]);
    expect(firstKnown).toBeGreaterThan(0);
  });

  it('begins with the most urgent', async () => {
    const severities = (await matters()).map(({ severity }) => severity);
    expect(new Set(severities)).toEqual(new Set(['CRITICAL', 'WARNING', 'NOTICE']));
    expect((await matters(1)).map(({ severity }) => severity)).toEqual(['CRITICAL']);
    const rank = (severity: string) => ['CRITICAL', 'WARNING', 'NOTICE'].indexOf(severity);
    expect(severities).toEqual(severities.toSorted((a, b) => rank(a) - rank(b)));
  });

  it('keeps places for each kind, however many of another one wait', async () => {
    await db.query(
      `insert into finding (id, kind, driver, order_number, generation, detail, first_seen_at)
        select 'fnd_many' || n, 'ORPHAN', 'none', 'SRV-MANY' || n, 1, 'x', '2020-01-01' from generate_series(1, 60) n`,
    );
    const kindsOf = (all: Matter[]) => new Set(all.map(({ kind }) => kind));
    const first = await matters(50);
    expect(first).toHaveLength(50);
    expect(kindsOf(first)).toEqual(kindsOf(await matters()));
    await db.query(`delete from finding where id like 'fnd_many%'`);
  });

  it('names only operations that exist', async () => {
    const operations = new Set(
      [schema.getQueryType(), schema.getMutationType()].flatMap((type) => Object.keys(type!.getFields())),
    );
    const named = (await matters()).flatMap(({ nextStep }) => nextStep.match(/\b[a-z]+[A-Z]\w+/g) ?? []);
    expect(named.filter((name) => !operations.has(name))).toEqual([]);
    expect(named).toContain('sendMessage');
  });
});
