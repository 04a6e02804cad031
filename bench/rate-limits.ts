/** Measures the cost of counting calls for the rate limits in PostgreSQL or Redis, beside counting in memory. */
import { hasRedis, startRedis } from '../test/setup/programs/redis.ts';
import { compareCosts, type Figure, median } from './figure.ts';
import { load, prepare } from './load.ts';
import { type Peer, startService } from './peers/compare.ts';
import { cpuSeconds, secondsOfChildren, secondsOfDatabase } from './report.ts';
import { stops } from './run.ts';
import type { SeededAccount } from './seed.ts';

const ROUNDS = 9;
const SLICE_SECONDS = 0.5;
const WARM_SECONDS = 4;
const CONNECTIONS = 16;
const BARS = { postgres: 1.9, redis: 1.35 };

interface Given {
  databaseUrl: string;
  folder: string;
  /** The process of PostgreSQL. */
  postmaster: number;
  /** It counts in memory. */
  service: Peer;
  reader: SeededAccount;
  orderNumber: string;
}

export async function rateLimits({ databaseUrl, folder, service, ...given }: Given): Promise<Figure[]> {
  const stores = { postgres: await startService(databaseUrl, folder, { RATE_LIMIT_STORE: 'postgres' }) };
  const redis = hasRedis ? await startRedis((stop) => void stops.push(stop)) : undefined;
  if (redis)
    Object.assign(stores, {
      redis: await startService(databaseUrl, folder, { RATE_LIMIT_STORE: 'redis', REDIS_URL: redis.url }),
    });
  const figures: Figure[] = [];
  for (const [name, peer] of Object.entries(stores)) {
    const [ours, theirs] = await costsOf([peer, service], given);
    const micros = (costs: Cost[]) => costs.map(({ apiMicros }) => apiMicros);
    const databaseMicros = [ours, theirs].map((costs) => median(costs.map((cost) => cost.databaseMicros)).toFixed(0));
    const figure = compareCosts(
      `GET one server, calls counted in ${name} to memory, CPU`,
      BARS[name as keyof typeof BARS],
      'µs',
      micros(ours),
      micros(theirs),
    );
    figures.push({ ...figure, detail: `${figure.detail}; PostgreSQL ${databaseMicros.join(' µs for ')} µs` });
  }
  return figures;
}

interface Cost {
  apiMicros: number;
  databaseMicros: number;
}

/** Measures both processes in turn. */
async function costsOf(
  peers: [Peer, Peer],
  { postmaster, reader, orderNumber }: Pick<Given, 'postmaster' | 'reader' | 'orderNumber'>,
): Promise<[Cost[], Cost[]]> {
  const request = prepare('GET', `/v1/servers/${orderNumber}`, reader.credential);
  const cost = async ({ port, pid }: Peer, seconds: number): Promise<Cost> => {
    const before = { api: cpuSeconds(pid), database: secondsOfChildren(postmaster) };
    const expects = (body: Buffer) => body.includes('"hostname"');
    const { requests } = await load({ port, request, expects, connections: CONNECTIONS, seconds });
    const databaseMicros = (secondsOfDatabase(postmaster, before.database) / requests) * 1e6;
    return { apiMicros: ((cpuSeconds(pid) - before.api) / requests) * 1e6, databaseMicros };
  };
  for (const peer of peers) await cost(peer, WARM_SECONDS);
  const costs: [Cost[], Cost[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++)
    for (const side of round % 2 ? ([0, 1] as const) : ([1, 0] as const))
      costs[side].push(await cost(peers[side], SLICE_SECONDS));
  return costs;
}
