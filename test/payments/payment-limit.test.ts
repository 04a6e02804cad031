/** Decisions about payments count in the limit of an operator, and wait for another one above it. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';

const { db, graphqlUrl, newAccount, operator } = await startFreehold({ OPERATOR_LIMIT_USD: '100' });

type Call = typeof operator;
const ADD = `mutation { addOperator(input: { name: "bea", role: BILLING }) { token } }`;
const bea: Call = graphqlClient(graphqlUrl, (await operator(ADD)).data.addOperator.token);
const codeOf = ({ errors }: { errors?: { extensions: { code: string } }[] }) => errors?.[0]?.extensions.code;
const proposalOf = async (accountId: string) =>
  (
    await operator('{ proposals { data { id state kind accountId amountUsd reason address returnTxId } } }')
  ).data.proposals.data.find((one: { accountId: string }) => one.accountId === accountId);
const approve = (id: string) => operator('mutation ($id: ID!) { approveProposal(id: $id) { state } }', { id });
const refuse = (id: string) => operator('mutation ($id: ID!) { refuseProposal(id: $id) { state } }', { id });

/** Writes a payment of 400 USD. A FINAL one is in the balance. */
async function newPayment(status: 'UNMATCHED' | 'FINAL') {
  const [account, payment] = [await newAccount(), newId('pay')];
  await db.query(
    `insert into payment (id, mode, external_key, network, tx_id, position, coin, address, account_id, units, status, credited_micros, seen_at, final_at)
      values ($1, 'CRYPTO', 'pay:bitcoin:' || $1, 'bitcoin', $1, 0, 'LTC', 'x', $2, '5000000', $3, 400000000, now(), now())`,
    [payment, account.id, status],
  );
  await db.query(
    `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
      values ($1, $2, 'topup', 'gateway:bitcoin', $4, 400000000, 'pay:bitcoin:' || $3, 'test')`,
    [newId('xfr'), account.id, payment, status === 'FINAL' ? `available:${account.id}` : 'suspense'],
  );
  if (status === 'FINAL')
    await db.query('update balance set available_micros = 400000000 where account_id = $1', [account.id]);
  return { ...account, accountId: account.id, payment };
}

describe('A decision about a payment above the limit', () => {
  const WRITE_OFF =
    'mutation ($id: ID!, $status: PaymentStatus) { writeOffPayment(id: $id, status: $status, reason: "Never came") { status } }';
  const GIVE_BACK =
    'mutation ($id: ID!, $txId: Line!) { returnPayment(id: $id, txId: $txId, reason: "Wrong coin") { status } }';
  const rowOf = async (id: string) =>
    (
      await db.query<{ status: string; returnTxId: string | null }>(
        'select status, return_tx_id from payment where id = $1',
        [id],
      )
    )[0]!;
  const statusOf = async (id: string) => (await rowOf(id)).status;

  it('sends an unmatched payment back after the approval', async () => {
    const { accountId, payment } = await newPayment('UNMATCHED');
    const RETURN = `mutation ($id: ID!) { requestReturn(paymentId: $id, key: "back", address: "ltc1q", reason: "Wrong coin") { status } }`;
    expect(codeOf(await bea(RETURN, { id: payment }))).toBe('approval_needed');
    const waiting = await proposalOf(accountId);
    expect(waiting).toMatchObject({ kind: 'RETURN', amountUsd: -400, address: 'ltc1q' });
    expect((await approve(waiting.id)).errors).toBeUndefined();
    expect((await bea(RETURN, { id: payment })).data.requestReturn.status).toBe('REQUESTED');
    expect(await db.query('select status from payment where id = $1', [payment])).toEqual([{ status: 'RETURNED' }]);
  });

  it('takes no final payment from a customer before the approval', async () => {
    const { accountId, payment: id, balance } = await newPayment('FINAL');
    const given = { id, status: 'FINAL' };
    for (let i = 0; i < 2; i++) expect(codeOf(await bea(WRITE_OFF, given))).toBe('approval_needed');
    expect([await balance(), await statusOf(id)]).toEqual([400, 'FINAL']);
    const waiting = await proposalOf(accountId);
    expect(waiting).toMatchObject({ kind: 'WRITE_OFF', amountUsd: -400, reason: 'Never came', state: 'OPEN' });
    expect((await approve(waiting.id)).errors).toBeUndefined();
    expect([await balance(), await statusOf(id)]).toEqual([0, 'WRITTEN_OFF']);
    expect((await bea(WRITE_OFF, given)).data.writeOffPayment.status).toBe('WRITTEN_OFF');
  });

  it('books no return by a transaction before the approval, and proposes a refused one again', async () => {
    const { accountId, payment: id } = await newPayment('UNMATCHED');
    expect(codeOf(await bea(GIVE_BACK, { id, txId: 'one' }))).toBe('approval_needed');
    await refuse((await proposalOf(accountId)).id);
    expect(codeOf(await bea(GIVE_BACK, { id, txId: 'two' }))).toBe('approval_needed');
    expect(await statusOf(id)).toBe('UNMATCHED');
    expect((await approve((await proposalOf(accountId)).id)).errors).toBeUndefined();
    expect(await rowOf(id)).toMatchObject({ status: 'RETURNED', returnTxId: 'two' });
  });

  it('is refused at once if the state of the payment does not allow it', async () => {
    const { accountId, payment: id } = await newPayment('FINAL');
    expect(codeOf(await bea(WRITE_OFF, { id }))).toBe('validation_failed');
    expect(codeOf(await bea(GIVE_BACK, { id, txId: 'one' }))).toBe('validation_failed');
    expect(await proposalOf(accountId)).toBeUndefined();
  });
});
