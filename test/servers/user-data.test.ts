/** The service keeps user data only while a machine may need it, and never as plain text. */
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const { dataDir, db, newAccount } = await startFreehold();
const USER_DATA = '#cloud-config\npassword: "a word of the customer"\n';
const MARK = 'a word of the customer';

async function customer(): Promise<TestAccount> {
  const account = await newAccount();
  await account.fund(100);
  return account;
}
async function order(account: TestAccount, more: object = {}): Promise<string> {
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', user_data: USER_DATA, ...more });
  return body.order_number;
}
const becomes = (account: TestAccount, number: string, status: string) =>
  eventually(async () => (await account.rest('GET', `/v1/servers/${number}`)).body.status === status);
const keptOf = async (number: string) =>
  (
    await db.query<{ kept: boolean }>('select user_data is not null as kept from server where order_number = $1', [
      number,
    ])
  )[0]!.kept;

/** Whether a table, or a file of the simulated machines, has the text in any spelling. */
async function findText(): Promise<string[]> {
  const tables = await db.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  const spellings = [MARK, Buffer.from(MARK).toString('hex'), Buffer.from(MARK).toString('base64').replace(/=+$/, '')];
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await db.query<{ row: string }>(`select t::text as row from ${name} as t`);
    if (rows.some(({ row }) => spellings.some((spelling) => row.includes(spelling)))) found.push(name);
  }
  for (const file of readdirSync(join(dataDir, 'machines')))
    if (spellings.some((spelling) => readFileSync(join(dataDir, 'machines', file), 'utf8').includes(spelling)))
      found.push(file);
  return found;
}

/** Takes the machines away for the time of the work, so that no step succeeds. */
async function withoutMachines<T>(work: () => Promise<T>): Promise<T> {
  const folder = join(dataDir, 'machines');
  renameSync(folder, `${folder}.away`);
  const back = () => renameSync(`${folder}.away`, folder);
  return work().finally(back);
}

describe('User data', () => {
  it('is sealed until the machine has booted, and erased then', async () => {
    const account = await customer();
    await account.rest('POST', '/v1/webhooks', { url: 'https://example.org/hook' });
    const number = await withoutMachines(async () => {
      const number = await order(account, { hostname: 'sealed' });
      expect(await keptOf(number)).toBe(true);
      return number;
    });
    expect(await findText()).toEqual([]);
    await becomes(account, number, 'running');
    expect(await keptOf(number)).toBe(false);
    expect(await findText()).toEqual([]);
  });

  it('is in no table after an order with an idempotency key', async () => {
    const account = await customer();
    const body = { service_code: 'vps-1', user_data: USER_DATA };
    const send = () => account.rest('POST', '/v1/servers', body, { 'idempotency-key': 'user-data-1' });
    const [first, again] = [await send(), await send()];
    expect(again.body).toEqual(first.body);
    expect(await findText()).toEqual([]);
  });

  it('is erased when the order fails', async () => {
    const account = await customer();
    const number = await withoutMachines(async () => {
      const number = await order(account);
      await becomes(account, number, 'failed');
      return number;
    });
    expect(await keptOf(number)).toBe(false);
  });

  it('is erased when the customer deletes the server before it boots', async () => {
    const account = await customer();
    await withoutMachines(async () => {
      const number = await order(account);
      expect((await account.rest('DELETE', `/v1/servers/${number}`)).status).toBe(200);
      expect(await keptOf(number)).toBe(false);
    });
  });

  it('comes again with a rebuild, is sealed then too, and is erased after it', async () => {
    const account = await customer();
    const number = await order(account, { user_data: undefined });
    await becomes(account, number, 'running');
    await account.rest('POST', '/v1/webhooks', { url: 'https://example.org/hook' });
    const rebuild = () => account.rest('PATCH', `/v1/servers/${number}`, { action: 'rebuild', user_data: USER_DATA });
    await withoutMachines(async () => {
      expect((await rebuild()).body.status).toBe('rebuilding');
      expect(await keptOf(number)).toBe(true);
      const [row] = await db.query<{ change: object }>('select change from server where order_number = $1', [number]);
      expect(row!.change).not.toHaveProperty('userData');
    });
    expect(await findText()).toEqual([]);
    // With the machines away it may have failed, which erases it, too.
    await eventually(
      async () => !['rebuilding'].includes((await account.rest('GET', `/v1/servers/${number}`)).body.status),
    );
    expect(await keptOf(number)).toBe(false);
    await rebuild();
    await becomes(account, number, 'running');
    expect(await keptOf(number)).toBe(false);
    expect(await findText()).toEqual([]);
  });
});
