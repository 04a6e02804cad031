/** Sums above the limit of one operator wait for another one. */
import { beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { noteRestore } from '../../provisioning/archives/restored.ts';
import { asSuperuser } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';

const { db, graphqlUrl, newAccount, operator } = await startFreehold({ OPERATOR_LIMIT_USD: '100' });

type Call = typeof operator;
/** Adds an operator. @param days since then */
async function add(name: string, role = 'BILLING', days = 8): Promise<Call> {
  const ADD = `mutation ($input: AddOperatorInput!) { addOperator(input: $input) { token operator { id } } }`;
  const { token, operator: added } = (await operator(ADD, { input: { name, role } })).data.addOperator;
  await age(added.id, days);
  return graphqlClient(graphqlUrl, token);
}
const age = (id: string, days: number) =>
  asSuperuser(db, `update event set created_at = created_at - make_interval(days => $2::int) where subject = $1`, [
    id,
    days,
  ]);
const codeOf = ({ errors }: { errors?: { extensions: { code: string } }[] }) => errors?.[0]?.extensions.code;
const adjust = (by: Call, accountId: string, amountUsd: number, key: string) =>
  by(
    `mutation ($accountId: ID!, $amountUsd: Usd!, $key: Line!) {
      adjustBalance(accountId: $accountId, amountUsd: $amountUsd, reason: "Goodwill", key: $key) { balanceUsd } }`,
    { accountId, amountUsd, key },
  );
const WALLET = '0x000000000000000000000000000000000000dEaD';
const payOut = (by: Call, accountId: string, amountUsd: number, key: string, address = WALLET) =>
  by(
    `mutation ($accountId: ID!, $amountUsd: Usd!, $key: Line!, $address: Line!) {
      requestPayout(accountId: $accountId, coin: "USDC-BASE", amountUsd: $amountUsd, key: $key, address: $address, reason: "Leaves") { id amountUsd } }`,
    { accountId, amountUsd, key, address },
  );
const FIELDS = 'id state kind accountId amountUsd reason address proposer decider';
const proposalOf = async (accountId: string) =>
  (await operator(`{ proposals { data { ${FIELDS} } } }`)).data.proposals.data.find(
    (one: { accountId: string }) => one.accountId === accountId,
  );
const approve = (by: Call, id: string) => by(`mutation ($id: ID!) { approveProposal(id: $id) { ${FIELDS} } }`, { id });
const refuse = (by: Call, id: string) => by('mutation ($id: ID!) { refuseProposal(id: $id) { state } }', { id });
let bea: Call;
beforeAll(async () => {
  bea = await add('bea');
});

it('The log names the account of a proposal to each operator who reads of it in a sentence', async () => {
  const { id: accountId } = await newAccount();
  expect(codeOf(await adjust(bea, accountId, 5_000, 'sentence'))).toBe('approval_needed');
  const ro = await add('ro', 'READ_ONLY');
  const { data } = await ro('{ openMatters(limit: 100) { nextStep } }');
  expect(data.openMatters.some(({ nextStep }: { nextStep: string }) => nextStep.includes(accountId))).toBe(true);
  const LOG = `select from audit_entry where path = '/graphql#openMatters' and resource_id = $1`;
  await eventually(async () => (await db.query(LOG, [accountId])).length === 1);
});

describe('New operators', () => {
  it('have one limit together, however many an owner adds', async () => {
    const [eve, { id: accountId, balance }] = [await add('eve', 'OWNER'), await newAccount()];
    const codes = [];
    for (const name of ['eve-1', 'eve-2', 'eve-3'])
      codes.push(codeOf(await adjust(await add(name, 'BILLING', 0), accountId, 60, name)));
    expect(codes).toEqual([undefined, 'approval_needed', 'approval_needed']);
    expect(codeOf(await adjust(eve, accountId, 100, 'own'))).toBeUndefined();
    expect(await balance()).toBe(160);
  });

  it('propose nothing that the owner who added them may approve', async () => {
    const [kay, { id: accountId, balance }] = [await add('kay', 'OWNER'), await newAccount()];
    expect(codeOf(await adjust(await add('second-self', 'BILLING', 0), accountId, 900, 'proposed by a new one'))).toBe(
      'approval_needed',
    );
    const { id } = await proposalOf(accountId);
    const refused = await approve(kay, id);
    expect([codeOf(refused), refused.errors[0].message]).toEqual([
      'insufficient_scope',
      expect.stringContaining('Only the token in DATA_DIR approves'),
    ]);
    expect(await balance()).toBe(0);
    expect((await approve(operator, id)).data.approveProposal.state).toBe('APPROVED');
    expect(await balance()).toBe(900);
  });
});

describe('An adjustment above the limit', () => {
  it('waits until another operator has approved it, and moves once', async () => {
    const { id: accountId, balance } = await newAccount();
    const asked = await adjust(bea, accountId, 250, 'gift');
    expect([codeOf(asked), asked.errors[0].message]).toEqual([
      'approval_needed',
      expect.stringContaining('One operator, and all new operators together, move at most 100 USD in 24 hours.'),
    ]);
    expect(await balance()).toBe(0);
    const waiting = await proposalOf(accountId);
    expect(waiting).toMatchObject({
      state: 'OPEN',
      kind: 'ADJUSTMENT',
      amountUsd: 250,
      reason: 'Goodwill',
      proposer: 'bea',
    });
    const { openMatters } = (await operator('{ openMatters { kind subject nextStep } }')).data;
    expect(openMatters).toContainEqual({
      ...{ kind: 'PROPOSAL', subject: waiting.id },
      nextStep: expect.stringContaining(`bea wants to move 250 USD of ${accountId}`),
    });
    // The same key proposes nothing more.
    expect(codeOf(await adjust(bea, accountId, 250, 'gift'))).toBe('approval_needed');
    expect(codeOf(await adjust(bea, accountId, 251, 'gift'))).toBe('idempotency_key_reused');

    expect((await approve(operator, waiting.id)).data.approveProposal).toMatchObject({
      ...{ state: 'APPROVED', decider: 'operator' },
    });
    expect(await balance()).toBe(250);
    expect(codeOf(await approve(operator, waiting.id))).toBe('validation_failed');
    expect((await adjust(bea, accountId, 250, 'gift')).data.adjustBalance.balanceUsd).toBe(250);
    expect(await balance()).toBe(250);
    const states = await db.query<{ state: string }>(
      `select data->>'state' as state from event where account_id = 'operator' and subject = $1 order by id`,
      [waiting.id],
    );
    expect(states).toEqual([{ state: 'OPEN' }, { state: 'APPROVED' }]);
  });

  it('is approved neither by its proposer nor without the right', async () => {
    const { id: accountId, balance } = await newAccount();
    await adjust(operator, accountId, 500, 'self');
    const { id } = await proposalOf(accountId);
    expect(codeOf(await approve(operator, id))).toBe('insufficient_scope');
    expect(codeOf(await approve(await add('sue', 'SUPPORT'), id))).toBe('insufficient_scope');
    expect(codeOf(await approve(await add('ron', 'READ_ONLY'), id))).toBe('insufficient_scope');
    expect(await balance()).toBe(0);
    // But the proposer takes it back.
    expect((await refuse(operator, id)).data.refuseProposal.state).toBe('REFUSED');
    expect(codeOf(await approve(bea, id))).toBe('validation_failed');
    expect((await adjust(operator, accountId, 500, 'self')).errors[0].message).toContain('Use another key');
  });

  it('is not approved by an operator whom an owner added or changed in the last seven days', async () => {
    const { id: accountId, balance } = await newAccount();
    const [young, changed] = [await add('nia', 'BILLING', 6), await add('pia')];
    await adjust(bea, accountId, 500, 'second self');
    const { id } = await proposalOf(accountId);
    const { operators } = (await operator('{ operators { id name } }')).data;
    const idOf = (name: string) => operators.find((one: { name: string }) => one.name === name).id;
    await operator('mutation ($id: ID!) { setOperatorRole(id: $id, role: OWNER) { id } }', { id: idOf('pia') });
    for (const by of [young, changed]) {
      const { errors } = await approve(by, id);
      expect([errors[0].extensions.code, errors[0].message]).toEqual([
        'insufficient_scope',
        expect.stringMatching(/changed you at .*You approve from .* on/),
      ]);
    }
    expect(await balance()).toBe(0);
    await age(idOf('nia'), 1);
    expect(codeOf(await approve(young, id))).toBeUndefined();
  });

  it('moves once when two operators approve it at the same moment', async () => {
    const { id: accountId, balance } = await newAccount();
    const [one, two] = [await add('tom'), await add('tim')];
    await adjust(bea, accountId, 300, 'twice');
    const { id } = await proposalOf(accountId);
    const codes = (await Promise.all([approve(one, id), approve(two, id)])).map(codeOf);
    expect(codes.sort()).toEqual(['validation_failed', undefined]);
    expect(await balance()).toBe(300);
  });

  it('stays open if the balance does not suffice at the approval', async () => {
    const { id: accountId, balance } = await newAccount();
    await adjust(await add('una'), accountId, 60, 'some');
    await adjust(bea, accountId, -150, 'most');
    const { id, amountUsd } = await proposalOf(accountId);
    expect(amountUsd).toBe(-150);
    expect(codeOf(await approve(operator, id))).toBe('insufficient_balance');
    expect([(await proposalOf(accountId)).state, await balance()]).toEqual(['OPEN', 60]);
  });

  it('expires', async () => {
    const { id: accountId } = await newAccount();
    await adjust(bea, accountId, 400, 'late');
    const { id } = await proposalOf(accountId);
    await db.query(`update proposal set expires_at = now() - interval '1 second' where id = $1`, [id]);
    expect((await approve(operator, id)).errors[0].message).toContain('EXPIRED');
    await db.query(`update task set run_at = now() where subject = 'cron:proposal-expiry'`);
    await eventually(async () => (await proposalOf(accountId)).state === 'EXPIRED');
    expect(codeOf(await adjust(bea, accountId, 400, 'late'))).toBe('validation_failed');
  });
});

it('The list of proposals has pages, and no sum within the limit', async () => {
  const { id } = await newAccount();
  await adjust(await add('zed'), id, 5, 'small');
  for (const key of ['one', 'two']) await adjust(bea, id, 700, key);
  const PAGE =
    'query ($cursor: Cursor) { proposals(limit: 1, state: OPEN, cursor: $cursor) { data { amountUsd } nextCursor } }';
  const { nextCursor } = (await operator(PAGE)).data.proposals;
  expect((await operator(PAGE, { cursor: nextCursor })).data.proposals.data).toEqual([{ amountUsd: 700 }]);
  const ALL = 'query ($cursor: Cursor) { proposals(limit: 1, cursor: $cursor) { data { state } nextCursor } }';
  const all = (await operator(ALL)).data.proposals;
  expect((await operator(ALL, { cursor: all.nextCursor })).errors).toBeUndefined();
  const amounts = (await operator('{ proposals(limit: 200) { data { amountUsd } } }')).data.proposals.data;
  expect(amounts).not.toContainEqual({ amountUsd: 5 });
});

describe('The sums of an operator', () => {
  it('count together for a day, with both signs and of each kind', async () => {
    const account = await newAccount();
    await account.topUp(50);
    const ida = await add('ida');
    expect(codeOf(await adjust(ida, account.id, 40, 'a'))).toBeUndefined();
    expect(codeOf(await adjust(ida, account.id, -40, 'b'))).toBeUndefined();
    // A repetition counts once.
    expect(codeOf(await adjust(ida, account.id, -40, 'b'))).toBeUndefined();
    expect((await payOut(ida, account.id, 20, 'c')).errors).toBeUndefined();
    expect(codeOf(await adjust(ida, account.id, 1, 'd'))).toBe('approval_needed');
    expect(codeOf(await adjust(bea, account.id, 1, 'e'))).toBeUndefined();
    await db.query(`update proposal set created_at = now() - interval '25 hours' where key in ('a', 'b', 'c')`);
    expect(codeOf(await adjust(ida, account.id, 1, 'f'))).toBeUndefined();
  });

  it('do not exceed the limit when they come at once', async () => {
    const { id, balance } = await newAccount();
    const eva = await add('eva');
    const codes = (await Promise.all([1, 2, 3, 4].map((n) => adjust(eva, id, 40, `part ${n}`)))).map(codeOf);
    expect(codes.filter((code) => code === undefined)).toHaveLength(2);
    expect(await balance()).toBe(80);
  });

  it('do not count a move again that is older than the limit', async () => {
    const { id, balance } = await newAccount();
    const max = await add('max');
    await adjust(max, id, 90, 'older');
    // As if the operator had sent it before the company set a limit.
    await db.query(`update proposal set key = 'another' where key = 'older'`);
    expect(codeOf(await adjust(max, id, 90, 'older'))).toBeUndefined();
    expect(await balance()).toBe(90);
  });

  it('count nothing if the move is refused', async () => {
    const { id } = await newAccount();
    const lea = await add('lea');
    expect(codeOf(await adjust(lea, id, -100, 'none'))).toBe('insufficient_balance');
    expect(codeOf(await adjust(lea, id, 100, 'all'))).toBeUndefined();
  });
});

describe('A payout above the limit', () => {
  it('shows the wallet, and reserves the money at the approval', async () => {
    const account = await newAccount();
    await account.topUp(200);
    const before = await account.balance();
    expect(codeOf(await payOut(bea, account.id, 150, 'refund'))).toBe('approval_needed');
    const waiting = await proposalOf(account.id);
    expect(waiting).toMatchObject({ kind: 'PAYOUT', amountUsd: -150, address: WALLET, reason: 'Leaves' });
    expect(await account.balance()).toBe(before);
    expect(codeOf(await payOut(bea, account.id, 150, 'refund', '0x000000000000000000000000000000000000bEEF'))).toBe(
      'idempotency_key_reused',
    );
    expect((await approve(operator, waiting.id)).errors).toBeUndefined();
    const after = await account.balance();
    expect(after).toBeLessThanOrEqual(before - 150);
    const { id, amountUsd } = (await payOut(bea, account.id, 150, 'refund')).data.requestPayout;
    expect([id, amountUsd]).toEqual([expect.stringMatching(/^out_/), 150]);
    expect(await account.balance()).toBe(after);
  });

  it('is refused at once for a wrong source', async () => {
    const { id } = await newAccount();
    const REQUEST = `mutation ($id: ID!) { requestPayout(accountId: $id, coin: "USDC-BASE", amountUsd: 1000, key: "wrong",
      address: "${WALLET}", source: "nowhere", reason: "Leaves") { id } }`;
    expect(codeOf(await bea(REQUEST, { id }))).toBe('validation_failed');
    expect(await proposalOf(id)).toBeUndefined();
  });
});

// The last one, because it also stops the engines.
it('A restore ends open proposals, because the lost time may have approved them', async () => {
  const { id: accountId, balance } = await newAccount();
  await adjust(bea, accountId, 700, 'lost');
  const { proposals } = await noteRestore(db, SYSTEM);
  const { id, state } = await proposalOf(accountId);
  expect([proposals.includes(id), state]).toEqual([true, 'EXPIRED']);
  expect(codeOf(await approve(operator, id))).toBe('validation_failed');
  expect(await balance()).toBe(0);
});
