/** Compares the processor time of two reads by REST with that of GraphQL over HTTP, as Yoga serves it. */
import assert from 'node:assert/strict';
import { compareCosts, type Figure } from './figure.ts';
import { load, prepare } from './load.ts';
import { type Peer, startPeer } from './peers/compare.ts';
import { cpuSeconds } from './report.ts';
import type { SeededAccount } from './seed.ts';

const ROUNDS = 9;
const SLICE_SECONDS = 0.5;
const WARM_SECONDS = 4;
const CONNECTIONS = 16;
const BAR = 1;
const FIELDS =
  'order_number kind status hostname region os ipv4 ipv6 auto_renew delete_protection service_code ipv6_prefix created_at updated_at paid_until';

export async function yoga(
  databaseUrl: string,
  service: Peer,
  { credential }: SeededAccount,
  orderNumber: string,
): Promise<Figure[]> {
  const peer = await startPeer('yoga', databaseUrl);
  const get = (path: string) => prepare('GET', path, credential);
  const ask = (query: string) => prepare('POST', '/graphql', credential, { query }, { accept: 'application/json' });
  const cases = [
    ['one server', get(`/v1/servers/${orderNumber}`), ask(`{ server(order_number: "${orderNumber}") { ${FIELDS} } }`)],
    ['a list of 50', get('/v1/servers'), ask(`{ servers(limit: 51) { ${FIELDS} } }`)],
  ] as const;
  const figures: Figure[] = [];
  for (const [name, rest, graphql] of cases) {
    const sides = [
      (seconds: number) => cost(service, rest, seconds),
      (seconds: number) => cost(peer, graphql, seconds),
    ] as const;
    for (const side of sides) await side(WARM_SECONDS);
    const costs: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++)
      for (const side of round % 2 ? ([0, 1] as const) : ([1, 0] as const))
        costs[side].push(await sides[side](SLICE_SECONDS));
    figures.push(compareCosts(`GET ${name} by REST to Yoga over HTTP, CPU`, BAR, 'µs', ...costs));
  }
  return figures;
}

/** Returns microseconds of the server's processor time for one request. */
async function cost({ port, pid }: Pick<Peer, 'port' | 'pid'>, request: Buffer, seconds: number): Promise<number> {
  const before = cpuSeconds(pid);
  const expects = (body: Buffer) => body.includes('"hostname"') && !body.includes('"errors"');
  const { requests } = await load({ port, request, expects, connections: CONNECTIONS, seconds });
  assert.ok(requests);
  return ((cpuSeconds(pid) - before) / requests) * 1e6;
}
