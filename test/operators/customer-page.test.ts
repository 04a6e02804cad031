/** One query shows the operator an account with all that belongs to it. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

const CUSTOMER = `query ($id: ID!) { customer(id: $id) {
  account { id email openCases } balance { balanceUsd } servers { orderNumber status } payments { status }
  messages { subject } events { type } notes { author text } cases { address } } }`;
const NOTE = 'mutation ($id: ID!, $text: MessageBody!) { addNote(accountId: $id, text: $text) { id } }';
const OPEN = 'mutation ($input: OpenCaseInput!) { openCase(input: $input) { id } }';
const customer = (id: string) => operator(CUSTOMER, { id });

describe('The query of a customer', () => {
  it('shows servers, payments, messages, events, notes and cases of that account alone', async () => {
    const [{ id, email, topUp, rest }, other] = [await newAccount(), await newAccount()];
    await topUp(30);
    const { body: server } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
    const [at, deadline] = [0, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString());
    const input = { source: 'A neighbour', address: server.ipv4, at, text: 'It scans us.', deadline };
    await operator(OPEN, { input });
    await operator(NOTE, { id, text: 'Pays late.' });
    const { data } = await customer(id);
    expect(data.customer).toMatchObject({
      ...{ account: { id, email, openCases: 1 }, balance: { balanceUsd: 24 } },
      ...{ servers: [{ orderNumber: server.order_number }], payments: [{ status: expect.any(String) }] },
      ...{ messages: [{ subject: `Complaint about ${server.ipv4}` }], cases: [{ address: server.ipv4 }] },
      notes: [{ author: 'operator', text: 'Pays late.' }],
    });
    expect(data.customer.events.map(({ type }: { type: string }) => type)).toEqual(
      expect.arrayContaining(['case.opened', 'message.created', 'server.created', 'topup.confirmed']),
    );
    expect((await customer(other.id)).data.customer).toMatchObject({ servers: [], payments: [], notes: [], cases: [] });
  });

  it('leaves an entry in the audit log, and is for the operator alone', async () => {
    const { id, graphql } = await newAccount();
    await customer(id);
    await eventually(async () => {
      const found = await db.query(
        `select from audit_entry where path = '/graphql#customer' and resource_id = $1 and account_id = 'operator'`,
        [id],
      );
      return found.length > 0;
    });
    expect((await graphql(CUSTOMER, { id })).errors[0].extensions.code).toBe('insufficient_scope');
    expect((await customer(newId('acct'))).errors[0].extensions.code).toBe('not_found');
  });
});

describe('A note', () => {
  it('reaches no customer: neither its webhooks nor its audit log', async () => {
    const { id, rest } = await newAccount();
    const note = (await operator(NOTE, { id, text: 'Pays late.' })).data.addNote.id;
    expect(await db.query('select account_id, data from event where subject = $1', [note])).toEqual([
      { accountId: 'operator', data: { accountId: id } },
    ]);
    expect(JSON.stringify((await rest('GET', '/v1/account/audit-log')).body)).not.toContain('note');
  });

  it('needs an account that exists', async () => {
    expect((await operator(NOTE, { id: newId('acct'), text: 'x' })).errors[0].extensions.code).toBe('not_found');
  });
});
