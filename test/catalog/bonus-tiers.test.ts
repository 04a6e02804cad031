/** The bonuses of top-ups: the operator sets them, and each top-up keeps those of its time. */
import { expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { anonymous, newAccount, operator } = await startFreehold();

type Tier = { minUsd: number; bonusPercent: number };
const SET = `mutation ($tiers: [BonusTierInput!]!, $seen: [BonusTierInput!]) {
  setBonusTiers(tiers: $tiers, seen: $seen) { minUsd bonusPercent } }`;
const set = (tiers: Tier[], seen?: Tier[]) => operator(SET, { tiers, seen });
const tier = (minUsd: number, bonusPercent: number): Tier => ({ minUsd, bonusPercent });
const shown = async () => (await anonymous('GET', '/v1/billing/bonus-tiers')).body.data;
const quoteOf = async (amount_usd: number) => {
  const account = await newAccount();
  return (await account.rest('POST', '/v1/billing/topups', { amount_usd, crypto: 'BTC' })).body.bonus_usd;
};

it('New bonuses count for new top-ups, and customers see them within a second', async () => {
  expect(await quoteOf(100)).toBe(2);
  expect((await set([tier(200, 10), tier(50, 5)])).data.setBonusTiers).toEqual([tier(50, 5), tier(200, 10)]);
  await eventually(async () => (await shown())[0]?.min_usd === 50);
  expect(await shown()).toEqual([
    { min_usd: 50, bonus_percent: 5 },
    { min_usd: 200, bonus_percent: 10 },
  ]);
  expect([await quoteOf(49), await quoteOf(100), await quoteOf(200)]).toEqual([0, 5, 20]);
  await set([]);
  expect(await quoteOf(200)).toBe(0);
});

it('An opened top-up keeps its bonus', async () => {
  await set([tier(100, 4)]);
  const account = await newAccount();
  const opened = await account.rest('POST', '/v1/billing/topups', { amount_usd: 100, crypto: 'USDC-BASE' });
  await set([tier(100, 1)]);
  expect(opened.body.bonus_usd).toBe(4);
  await eventually(async () => (await account.balance()) === 104);
});

it('The later of two operators hears of the change of the earlier one', async () => {
  await set([tier(100, 2)]);
  expect((await set([tier(100, 3)], [tier(100, 2)])).errors).toBeUndefined();
  const { errors } = await set([tier(100, 4)], [tier(100, 2)]);
  expect(errors[0].message).toMatch(
    /^operator has changed the list of bonuses meanwhile, at \S+Z \(tiers \[\{"minUsd":100,"bonusPercent":3\}\]\)/,
  );
  const { data } = await operator('{ operatorEvents(type: "catalog.updated", limit: 1) { data { subject data } } }');
  expect(data.operatorEvents.data).toEqual([
    { subject: 'bonus', data: { tiers: [tier(100, 3)], before: [tier(100, 2)] } },
  ]);
});

it.each([
  [[tier(0, 2)]],
  [[tier(10_001, 2)]],
  [[tier(100, 0)]],
  [[tier(100, 101)]],
  [[tier(100, 2), tier(100, 3)]],
  [[tier(100, 3), tier(200, 3)]],
  [Array.from({ length: 21 }, (_, i) => tier(i + 1, i + 1))],
])('Bonuses of %j are refused', async (tiers) => {
  expect((await set(tiers)).errors[0].extensions.errors[0].field).toBe('tiers');
});

it('Only operators change bonuses', async () => {
  const account = await newAccount();
  expect((await account.graphql(SET, { tiers: [] })).errors[0].extensions.code).toBe('insufficient_scope');
});
