/** The operator works in GraphQL, and watches every server of every customer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { listen } from '../setup/subscription.ts';
import type { Account } from './account.ts';
import type { Weighed } from './actor.ts';
import { PATIENCE_MS } from './api-client.ts';
import type { Chance } from './chance.ts';
import type { Arguments } from './measurements.ts';
import { type Measurements, NO_ANSWER } from './measurements.ts';

export interface Operator {
  name: string;
  chance: Chance;
  measurements: Measurements;
  ask: ReturnType<typeof graphqlAsker>;
  accounts: readonly Account[];
  /** The operator suspends this account now and then. */
  suspended: Account;
}

/** Sends a query, and times and checks the answer. @returns the data, or undefined after a refusal */
export function graphqlAsker(url: string, token: string, measurements: Measurements) {
  return async (name: string, query: string, variables: Arguments = {}, refusals: readonly string[] = []) => {
    const startedAt = performance.now();
    const { data, errors } = await send(url, token, { query, variables });
    const code = errors?.[0] ? (errors[0].extensions?.code ?? errors[0].message) : 'ok';
    const title = `${name} (GraphQL)`;
    measurements.answered({ name: title, waits: false, ms: performance.now() - startedAt, code });
    if (code !== 'ok' && !refusals.includes(code)) measurements.surprise(title, variables, { code, body: errors });
    return code === 'ok' ? data : undefined;
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the caller knows its shape
async function send(url: string, token: string, request: object): Promise<{ data?: any; errors?: any[] }> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const body = JSON.stringify(request);
  return fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(PATIENCE_MS) }).then(
    (response) => response.json(),
    (error) => ({ errors: [{ message: String(error), extensions: { code: NO_ANSWER } }] }),
  );
}

const STOCK =
  'mutation ($region: Code!, $tier: Code!, $total: Amount!) { setStock(region: $region, serviceCode: $tier, total: $total) { total } }';

/** Raises the stock above the demand of any soak. */
export async function openShop({ ask }: Pick<Operator, 'ask'>): Promise<void> {
  for (const region of ['ams', 'zrh', 'kef', 'buh'])
    for (const tier of ['vps-1', 'vps-2', 'vps-3']) await ask('setStock', STOCK, { region, tier, total: 1_000 });
}

const restock = async ({ ask, chance }: Operator) => {
  const [region, tier] = [chance.pick(['ams', 'zrh', 'kef', 'buh']), chance.pick(['vps-1', 'vps-2', 'vps-3'])];
  await ask('setStock', STOCK, { region, tier, total: chance.between(900, 1_100) });
};

const ADJUST = `mutation ($accountId: ID!, $amountUsd: Usd!, $key: Line!) {
  adjustBalance(accountId: $accountId, amountUsd: $amountUsd, reason: "A soak", key: $key) { balanceUsd } }`;
/** Takes more than it gives, so that accounts cannot always pay a renewal. */
const adjust = async ({ ask, chance, accounts }: Operator) => {
  const amountUsd = chance.between(-60, 20) || 1;
  const variables = { accountId: chance.pick(accounts)!.id, amountUsd, key: crypto.randomUUID() };
  await ask('adjustBalance', ADJUST, variables, ['insufficient_balance']);
};

const PUBLISH = 'mutation ($input: PublishIncidentInput!) { publishIncident(input: $input) { id } }';
const UPDATE = 'mutation ($id: ID!, $input: UpdateIncidentInput!) { updateIncident(id: $id, input: $input) { id } }';
const incident = async ({ ask, chance }: Operator) => {
  const input = { name: 'A soak', impact: 'MINOR', status: 'INVESTIGATING', components: ['api'], body: 'We look.' };
  const published = await ask('publishIncident', PUBLISH, { input });
  await sleep(chance.between(50, 500));
  const resolved = { status: 'RESOLVED', body: 'It is over.' };
  if (published) await ask('updateIncident', UPDATE, { id: published.publishIncident.id, input: resolved });
};

const SUSPEND = 'mutation ($id: ID!) { suspendAccount(id: $id, reason: "A soak") { id } }';
const RESUME = 'mutation ($id: ID!) { resumeAccount(id: $id) { id } }';
const suspend = async ({ ask, chance, suspended }: Operator) => {
  await ask('suspendAccount', SUSPEND, { id: suspended.id });
  await sleep(chance.between(200, 1_500));
  await ask('resumeAccount', RESUME, { id: suspended.id });
};

const QUERIES = {
  books: '{ books { balanced } }',
  servers: '{ servers(limit: 50) { data { orderNumber status ipv4 } } }',
  tasks: '{ tasks(limit: 50) { subject state step error } }',
  stock: '{ stock { region serviceCode total claimed } }',
  findings: '{ findings(limit: 50) { kind orderNumber } }',
  serviceStatus: '{ serviceStatus { indicator components { id status } } }',
};
const look = async ({ ask, chance, measurements }: Operator) => {
  const [name, query] = chance.pick(Object.entries(QUERIES))!;
  const data = await ask(name, query);
  if (data?.books?.balanced === false) measurements.contradiction('The books did not balance.');
};

export const OPERATOR_OPERATIONS: Weighed<(operator: Operator) => Promise<void>> = [
  [3, restock],
  [4, adjust],
  [1, incident],
  [2, suspend],
  [4, look],
];

/** Subscribes to the changes of every server. */
export const watchServers = (url: string, token: string) =>
  listen(url, token, 'subscription { serverUpdated { type server { orderNumber status } } }');
