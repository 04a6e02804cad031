/** Two operators change the same thing. The later one hears of the earlier change, and replaces nothing unseen. */
import { expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

/** Reads what a page of the console shows. */
type See = () => Promise<unknown>;
/** Sends a change with the values that its operator saw. */
type Change = (seen: unknown, value: number) => Promise<{ errors?: { message: string }[] }>;

const one = async (query: string, field: string, fits: (row: Record<string, unknown>) => boolean) =>
  (await operator(query)).data[field].find(fits);

const HOST =
  'mutation ($seen: Amount, $value: Amount!) { updateHost(name: "h1", seen: $seen, input: { vcpus: $value }) { revision } }';
async function host(): Promise<[See, Change]> {
  const size = 'vcpus: 8, memoryMb: 8000, diskGb: 100';
  await operator(`mutation { addHost(input: { name: "h1", region: "ams", kind: VPS, ${size} }) { name } }`);
  const see = async () => (await one('{ hosts { name revision } }', 'hosts', ({ name }) => name === 'h1')).revision;
  return [see, (seen, value) => operator(HOST, { seen, value: 8 + value })];
}

const ENGINE =
  'mutation ($seen: Amount, $pool: Line!) { updateEngine(name: "e1", seen: $seen, input: { pool: $pool }) { revision } }';
async function engine(): Promise<[See, Change]> {
  const connection = {
    ...{ endpoints: ['unix:/dev/null'], project: 'freehold', pool: 'default', network: 'lxdbr0', nameservers: [] },
    ...{ openMail: false, clientCertificate: null, serverCertificate: null },
  };
  await db.query(
    `insert into engine (name, kinds, needs_hosts, simulated, region_code, connection)
      values ('e1', '{VPS}', true, false, 'ams', $1)`,
    [JSON.stringify(connection)],
  );
  const see = async () => (await one('{ engines { name revision } }', 'engines', ({ name }) => name === 'e1')).revision;
  return [see, (seen, value) => operator(ENGINE, { seen, pool: `pool-${value}` })];
}

const COIN =
  'mutation ($seen: Boolean, $on: Boolean!) { updateCoin(code: "BTC", available: $on, seen: $seen) { code } }';
async function coin(): Promise<[See, Change]> {
  const see = async () => (await one('{ rates { coin offered } }', 'rates', (row) => row.coin === 'BTC')).offered;
  return [see, (seen) => operator(COIN, { seen, on: false })];
}

const LIMITS = `mutation ($id: ID!, $seen: SetAccountLimitsInput, $value: AccountLimit!) {
  setAccountLimits(id: $id, seen: $seen, input: { servers: $value }) { id } }`;
async function limits(): Promise<[See, Change]> {
  const { id } = await newAccount();
  const READ = 'query ($id: Line!) { accounts(search: $id) { ownLimits { servers sshKeys } } }';
  const see = async () => (await operator(READ, { id })).data.accounts[0].ownLimits;
  return [see, (seen, value) => operator(LIMITS, { id, seen, value: 10 + value })];
}

const INCIDENT = `mutation ($id: ID!, $seen: Amount) {
  updateIncident(id: $id, seen: $seen, input: { status: MONITORING, body: "We look on." }) { id } }`;
async function incident(): Promise<[See, Change]> {
  const PUBLISH = `mutation { publishIncident(input: { name: "Power", status: INVESTIGATING, impact: MAJOR,
    components: [], body: "We look." }) { id } }`;
  const { id } = (await operator(PUBLISH)).data.publishIncident;
  const READ = '{ serviceStatus { incidents { id updates { body } } } }';
  const see = async () =>
    (await operator(READ)).data.serviceStatus.incidents.find((row: { id: string }) => row.id === id).updates.length;
  return [see, (seen) => operator(INCIDENT, { id, seen })];
}

it.each([
  ['a host', host],
  ['an engine', engine],
  ['a coin', coin],
  ['the limits of an account', limits],
  ['an incident', incident],
])('The later of two changes of %s is refused, and one without a view is not', async (_, make) => {
  const [see, change] = await make();
  const seen = await see();
  expect((await change(seen, 1)).errors).toBeUndefined();
  const late = await change(seen, 2);
  expect(late.errors?.[0]?.message).toMatch(/^operator has changed .* meanwhile, at 20\S+Z.*\. Look at it again\.$/);
  expect((await change(await see(), 3)).errors).toBeUndefined();
  expect((await change(null, 4)).errors).toBeUndefined();
});
