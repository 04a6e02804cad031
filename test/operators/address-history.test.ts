/** An operator finds the customer who had an address at the time of a complaint. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

const SEARCH = 'query ($search: Line!, $at: DateTime) { accounts(search: $search, at: $at) { id } }';
const search = async (search: string, at?: Date) => (await operator(SEARCH, { search, at })).data.accounts;
const USES = `query ($address: IpAddress!, $at: DateTime) {
  addressUses(address: $address, at: $at) { address orderNumber accountId from until } }`;
const uses = async (address: string, at?: Date) => (await operator(USES, { address, at })).data.addressUses;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);

/** A customer whose server had its addresses for an hour, two days ago. */
async function formerCustomer() {
  const { id, fund, rest } = await newAccount();
  await fund(30);
  const { body: server } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
  await rest('DELETE', `/v1/servers/${server.order_number}`);
  const isFree = async () =>
    (await db.query('select from address where held_by = $1', [server.order_number])).length === 0;
  await eventually(isFree);
  await db.query(
    `update address_use set held_from = now() - interval '49 hours', held_until = now() - interval '48 hours'
      where order_number = $1`,
    [server.order_number],
  );
  return { id, number: server.order_number as string, ipv4: server.ipv4 as string, ipv6: server.ipv6 as string };
}

describe('A search for an address', () => {
  it('finds its present customer, and one that had it at the given time', async () => {
    const { id, ipv4, ipv6 } = await formerCustomer();
    for (const address of [ipv4, ipv6, ipv6.replace('::1', '::abcd')]) {
      expect([address, await search(address)]).toEqual([address, []]);
      expect(await search(address, hoursAgo(48.5))).toEqual([{ id }]);
      expect(await search(address, hoursAgo(50))).toEqual([]);
      expect(await search(address, hoursAgo(47))).toEqual([]);
    }
  });

  it('tells one customer from the next', async () => {
    const [first, second] = [await formerCustomer(), await formerCustomer()];
    await db.query(
      `update address_use set address = $2, held_until = null, held_from = now() - interval '1 hour'
        where order_number = $1 and family(address) = 4`,
      [second.number, first.ipv4],
    );
    expect(await search(first.ipv4)).toEqual([{ id: second.id }]);
    expect(await search(first.ipv4, hoursAgo(48.5))).toEqual([{ id: first.id }]);
    expect(await uses(first.ipv4)).toMatchObject([
      { orderNumber: second.number, accountId: second.id, until: null },
      { orderNumber: first.number, accountId: first.id, until: expect.any(String) },
    ]);
    expect(await uses(first.ipv4, hoursAgo(48.5))).toMatchObject([{ orderNumber: first.number }]);
  });

  it('takes a time for an address only', async () => {
    const { errors } = await operator(SEARCH, { search: 'ada@example.org', at: new Date() });
    expect(errors[0].extensions).toMatchObject({ code: 'validation_failed', errors: [{ field: 'at' }] });
  });
});

it('A worker deletes a use of an address a year after its end, and keeps the others', async () => {
  const [old, young] = [await formerCustomer(), await formerCustomer()];
  await db.query(
    `update address_use set held_from = now() - interval '367 days', held_until = now() - interval '366 days' where order_number = $1`,
    [old.number],
  );
  await db.query(`update task set run_at = now() where subject = 'cron:history-retention'`);
  await eventually(async () => (await uses(old.ipv4)).length === 0);
  expect(await uses(young.ipv4)).toHaveLength(1);
});
