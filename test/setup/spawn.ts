/** The service as a separate process, as a new user starts it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reportLines } from './log-lines.ts';
import { SECRET_KEY } from './vault.ts';

/** Runs its argument at the end of a file (`atEnd`) or of a test (`onTestFinished`). */
export type OnEnd = (end: () => void | Promise<void>) => void;

export interface RunningService {
  /** The URL without /v1. */
  url: string;
  /** The GraphQL endpoint of the internal listener. */
  graphql: string;
  operatorToken: string;
  dataDir: string;
  process: ChildProcess;
  /** The output until now. */
  output(): string;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
}

/** Tests make more calls from one address than the default limits allow. */
export const UNLIMITED = {
  RATE_LIMIT_KEY_PER_MINUTE: '1000000',
  RATE_LIMIT_KEY_PER_HOUR: '1000000',
  RATE_LIMIT_ACCOUNT_PER_MINUTE: '1000000',
  RATE_LIMIT_ACCOUNT_PER_HOUR: '1000000',
  RATE_LIMIT_PUBLIC_PER_MINUTE: '1000000',
  RATE_LIMIT_PAGES_PER_MINUTE: '1000000',
  RATE_LIMIT_UNPAID_PER_HOUR: '1000000',
  REGISTRATIONS_PER_MINUTE: '1000000',
  CONNECTIONS_MAX: '1000000',
};

/** The environment that a process inherits from the tests. */
export const MACHINE = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  // It records its locks, too.
  ...(process.env.LOCK_REPORT && {
    LOCK_REPORT: process.env.LOCK_REPORT,
    NODE_OPTIONS: `--import=${join(import.meta.dirname, 'lock-order.ts')}`,
  }),
};

/** The command that starts the program. */
export const MAIN = join(import.meta.dirname, '..', '..', 'start.js');

/**
 * Starts the service on free ports and waits until it is ready.
 * @param main the program: of another version, too
 */
export async function spawnService(environment: Record<string, string> = {}, main = MAIN): Promise<RunningService> {
  const dataDir = environment.DATA_DIR ?? newFolder();
  const [port, internalPort] = [
    environment.PORT ?? (await freePort()),
    environment.INTERNAL_PORT ?? (await freePort()),
  ];
  const [host, internalHost] = [environment.HOST ?? '127.0.0.1', environment.INTERNAL_HOST ?? '127.0.0.1'];
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...MACHINE,
      // The watch over locks and the rules of the log are those of this version.
      ...(main !== MAIN && { NODE_OPTIONS: '' }),
      PORT: String(port),
      INTERNAL_PORT: String(internalPort),
      DATA_DIR: dataDir,
      // Processes that share a database share the key, too.
      ...(environment.DATABASE_URL && { SECRET_KEY }),
      ...UNLIMITED,
      ...environment,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  if (main === MAIN) child.once('close', () => reportLines(output));
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const ready = (async () => {
    while (
      child.exitCode === null &&
      (!(await fetch(`http://${internalHost}:${internalPort}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )) ||
        !output.includes('is running'))
    ) {
      await new Promise((resume) => setTimeout(resume, 20));
    }
    return child.exitCode === null;
  })();
  if ((await Promise.race([ready, exited])) !== true) {
    // Another process may have taken a free port meanwhile.
    const isFixed = environment.PORT !== undefined || environment.INTERNAL_PORT !== undefined;
    if (!isFixed && output.includes('Another process listens')) return spawnService(environment, main);
    throw new Error(`The service did not start:\n${output}`);
  }
  return {
    url: `http://${host}:${port}`,
    graphql: `http://${internalHost}:${internalPort}/graphql`,
    operatorToken: readFileSync(join(dataDir, 'operator-token'), 'utf8').trim(),
    dataDir,
    process: child,
    output: () => output,
    stop: async () => {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Runs a script of the tests in a process of its own, which ends with the test. */
export function runScript(file: string, environment: Record<string, string>, onEnd: OnEnd) {
  const script = spawn(process.execPath, [file], {
    env: { ...MACHINE, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onEnd(() => void script.kill('SIGKILL'));
  return script;
}

/**
 * Waits until a process ends, and if the test still runs then starts another.
 * @returns the signal that ended it
 */
export async function deathOf(script: ChildProcess, onEnd?: OnEnd, next?: () => unknown): Promise<string | null> {
  let isOver = false;
  onEnd?.(() => {
    isOver = true;
  });
  const [, signal] = await once(script, 'exit');
  if (!isOver) next?.();
  return signal;
}

/** Creates a folder for the data of a service. PostgreSQL's user can enter it if root runs the tests. */
export function newFolder(parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, 'freehold-'));
  chmodSync(folder, 0o755);
  return folder;
}
export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });

const FIRST_PORT = 10_000;
const PORTS_OF_WORKER = 2_000;
/** Vitest runs a test file in one of these workers. They share no ports, so none takes the port that another has just chosen. */
const WORKER = Number(process.env.VITEST_POOL_ID ?? 0) % 10;
const given = new Set<number>();

/** Ports below those of outgoing connections, which could otherwise take a port before a service listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + WORKER * PORTS_OF_WORKER + Math.floor(Math.random() * PORTS_OF_WORKER);
    if (given.has(port)) continue;
    given.add(port);
    const server = createServer().listen(port, '127.0.0.1');
    const free = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** An answer of the REST API. */
export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
  body: any;
}

let check: typeof import('./openapi.ts').check | undefined;

/** Creates a REST client with a credential. It checks every answer against the OpenAPI document. */
export function restClient(url: string, credential?: string) {
  return async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(credential && { authorization: `Bearer ${credential}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const { status, headers: received } = response;
    const text = await response.text();
    // Loaded here: the processes that tests kill need the functions above, and would start half as fast.
    check ??= (await import('./openapi.ts')).check;
    check(method, url + path, { status, headers: received, text });
    const isJson = /[/+]json/.test(received.get('content-type') ?? 'application/json');
    return { status, headers: received, body: text && isJson ? JSON.parse(text) : text };
  };
}
export type RestClient = ReturnType<typeof restClient>;

/** Creates a GraphQL client with a credential. */
export function graphqlClient(url: string, credential?: string) {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  return async (query: string, variables: object = {}): Promise<{ status: number; data: any; errors: any }> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(credential && { authorization: `Bearer ${credential}` }) },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: unknown; errors: unknown };
    return { status: response.status, data, errors };
  };
}

/** Sends operations of an operator's sign-in, which need no credential. */
export const signInClient = (internalUrl: string) => async (operationName: string, variables: object) =>
  (
    await fetch(`${internalUrl}/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ operationName, variables }),
    })
  ).json();
