/** The servers that the benchmark compares, over one database. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePort, spawnService } from '../../test/setup/spawn.ts';
import type { Round } from '../report.ts';
import { stops } from '../run.ts';
import type { SeededAccount } from '../seed.ts';

export interface Peer<Name extends string = keyof Round> {
  name: Name;
  port: number;
  pid: number;
}

/** A request that both servers answer. */
export interface Comparison {
  account: SeededAccount;
  method: 'GET' | 'POST';
  path: string;
  /** Only for orders. */
  body?: object;
}

export async function startService(
  databaseUrl: string,
  folder: string,
  settings: Record<string, string> = {},
): Promise<Peer> {
  const environment = {
    DATA_DIR: folder,
    DATABASE_URL: databaseUrl,
    ROLES: 'api',
    LIMIT_SERVERS: '1000000',
    LIMIT_SESSIONS: '1000000',
    RATE_LIMIT_STORE: 'memory',
    ...settings,
  };
  const { url, process, stop } = await spawnService(environment);
  stops.push(stop);
  return { name: 'service', port: Number(new URL(url).port), pid: process.pid! };
}

/** Starts the peer of a file in this folder. */
export async function startPeer<Name extends 'handwritten' | 'yoga'>(
  name: Name,
  databaseUrl: string,
): Promise<Peer<Name>> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, PORT: String(port) },
  });
  const exited = once(child, 'exit');
  stops.push(() => child.kill() && exited);
  await Promise.race([once(child.stdout, 'data'), exited.then(() => assert.fail(`The ${name} server ended.`))]);
  return { name, port, pid: child.pid! };
}

/** Returns the answers of both servers to one request. @throws Error if they differ */
export async function compare({ account, method, path, body }: Comparison, peers: Peer[]): Promise<Buffer[]> {
  const headers = { authorization: `Bearer ${account.credential}`, 'content-type': 'application/json' };
  const [ours, theirs] = await Promise.all(
    peers.map(async ({ port }) => {
      // The client of the tests would check the handwritten server against our OpenAPI document.
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      return JSON.parse(text);
    }),
  );
  // Two orders differ in their values, so only their member names are compared.
  if (body) assert.deepEqual(Object.keys(ours).sort(), Object.keys(theirs).sort());
  else assert.deepEqual(ours, theirs);
  return [ours, theirs].map((answer) => Buffer.from(JSON.stringify(answer)));
}
