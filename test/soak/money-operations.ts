/** Operations on top-ups, and reads of an account. */
import type { Actor, Operation, Weighed } from './actor.ts';

const COINS = ['BTC', 'XMR', 'USDC-BASE', 'LTC', 'ETH'];

async function topUp({ api, chance, account, ...actor }: Actor): Promise<string | undefined> {
  const args = { amount_usd: chance.between(30, 60), crypto: chance.pick(COINS) };
  const key = chance.oneIn(2) ? actor.newKey() : undefined;
  const { code, body } = await api.ask('createTopup', args, key ? { key } : {});
  if (code !== 'ok') return undefined;
  account.topUps.add(body.order_number);
  return body.order_number;
}

const pay: Operation = async (actor) => {
  await topUp(actor);
};
/** The payment may arrive before or after the cancellation. */
const cancel: Operation = async (actor) => {
  const order_number = await topUp(actor);
  if (order_number) await actor.api.ask('cancelTopup', { order_number }, { refusals: ['topup_not_cancellable'] });
};
const lookAtTopUp: Operation = async ({ api, chance, account }) => {
  const order_number = chance.pick(account.topUps);
  if (order_number) await api.ask('getTopup', { order_number });
};

const READS = [
  'getAccount',
  'getBalance',
  'getUsage',
  'getAuditLog',
  'listTopups',
  'listSshKeys',
  'listApiKeys',
  'listWebhooks',
  'listCoins',
  'getCatalog',
  'getStatus',
  'searchAgents',
] as const;
const read: Operation = async ({ api, chance }) => {
  await api.ask(chance.pick(READS)!);
};

export const MONEY_OPERATIONS: Weighed<Operation> = [
  [3, pay],
  [1, cancel],
  [2, lookAtTopUp],
  [5, read],
];
