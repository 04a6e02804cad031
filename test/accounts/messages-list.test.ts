/** The list of messages shows the operator both sides, or one of them. */
import { expect, it } from 'vitest';
import { INSERT_MESSAGES } from '../../entities/accounts/message.ts';
import { newId } from '../../entities/ids.ts';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();
const TEXT = { subject: 'Maintenance', body: 'Your server moves.' };
const SEND = 'mutation ($input: SendMessageInput!) { sendMessage(input: $input) { id } }';
const BY_SIDE = `query ($accountId: ID, $from: MessageSender, $unread: Boolean) {
  messages(accountId: $accountId, from: $from, unread: $unread) { data { from } } }`;

it('The operator reads the messages of one side', async () => {
  const account = await newAccount();
  await account.rest('POST', '/v1/account/messages', TEXT);
  await operator(SEND, { input: { ...TEXT, accountId: account.id } });
  const sides = async (given: object) =>
    (await operator(BY_SIDE, { accountId: account.id, ...given })).data.messages.data.map(
      ({ from }: { from: string }) => from,
    );
  expect(await sides({})).toEqual(['OPERATOR', 'CUSTOMER']);
  expect(await sides({ from: 'CUSTOMER' })).toEqual(['CUSTOMER']);
  expect(await sides({ from: 'OPERATOR' })).toEqual(['OPERATOR']);
  expect(await sides({ from: 'OPERATOR', unread: true })).toEqual([]);
  expect(await sides({ from: 'CUSTOMER', unread: true })).toEqual(['CUSTOMER']);
});

it('A page of large messages ends early, and the pages together have all', async () => {
  const { id, rest } = await newAccount();
  const ids = Array.from({ length: 90 }, () => newId('msg'));
  const given = [ids, ids.map(() => id), 'OPERATOR', 'Long', 'x'.repeat(16_000), null, null, null];
  await INSERT_MESSAGES.all(db, given);
  const seen: string[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await rest('GET', `/v1/account/messages?limit=200${cursor}`);
    expect(JSON.stringify(body).length).toBeLessThan(520 * 1024);
    seen.push(...body.data.map((message: { id: string }) => message.id));
    if (!body.has_more) break;
    cursor = `&cursor=${body.next_cursor}`;
  }
  expect(seen.toSorted()).toEqual(ids.toSorted());
});
