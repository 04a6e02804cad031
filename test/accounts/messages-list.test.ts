/** The list of messages shows the operator both sides, or one of them. */
import { expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { newAccount, operator } = await startFreehold();
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
