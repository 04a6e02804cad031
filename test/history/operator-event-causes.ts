/** The causes of events about coins that the operator moves. They belong to no customer. */
import type { EventType } from '../../entities/history/event.ts';
import { importSent } from '../../provisioning/payments/wallet/import.ts';
import { exportPayouts } from '../../provisioning/payments/wallet/payouts.ts';
import { db, newAccount, operator } from './event-world.ts';

const ACTOR = { type: 'operator', id: null, name: 'npm run payouts', requestId: null } as const;
const REQUEST = `mutation ($accountId: ID!, $key: Line!) {
  requestPayout(accountId: $accountId, coin: "BTC", amountUsd: 5, key: $key, address: "bc1qcustomer", reason: "She leaves") { id } }`;
const CANCEL = 'mutation ($id: ID!) { cancelPayout(id: $id, reason: "She stays") { id } }';
const FINISH = 'mutation ($id: ID!) { finishPayout(id: $id) { id } }';
const SWEEP = `mutation { recordMovement(source: "gateway:bitcoin", target: "wallet:bitcoin", coin: "BTC", units: "1", txId: "cafe", amountUsd: 1) { id } }`;
const ADD = 'mutation { addOperator(input: { name: "ana", role: SUPPORT }) { operator { id } } }';
const CLOSE = 'mutation { closeMonth(month: "2020-01") { month } }';

/** Sends a mutation. @returns the member of its only field */
const act = async (mutation: string, member: string, given: object = {}): Promise<string> =>
  (Object.values((await operator(mutation, given)).data)[0] as Record<string, string>)[member]!;

/** A payout of 5 USD from a new account. */
async function requested(): Promise<string> {
  const account = await newAccount();
  await account.topUp(50);
  return act(REQUEST, 'id', { accountId: account.id, key: account.id });
}
async function exported(): Promise<string> {
  const id = await requested();
  await exportPayouts(db, ACTOR);
  return id;
}
async function broadcast(): Promise<string> {
  const id = await exported();
  await importSent(db, [{ id, txId: `tx-${id}` }], ACTOR);
  return id;
}

/** Each event with its cause, which returns the subject of the event. */
export const OPERATOR_CAUSES: Partial<Record<EventType, () => Promise<string>>> = {
  'payout.requested': requested,
  'payout.exported': exported,
  'payout.broadcast': broadcast,
  'payout.final': async () => act(FINISH, 'id', { id: await broadcast() }),
  'payout.cancelled': async () => act(CANCEL, 'id', { id: await exported() }),
  'movement.recorded': () => act(SWEEP, 'id'),
  'operator.updated': async () => (await operator(ADD)).data.addOperator.operator.id,
  'note.added': async () =>
    act('mutation ($id: ID!) { addNote(accountId: $id, text: "Pays late") { id } }', 'id', {
      id: (await newAccount()).id,
    }),
  'backup.noted': () => act('mutation { noteBackup { subject } }', 'subject'),
  'month.closed': () => act(CLOSE, 'month'),
};
