/** The installation: one PostgreSQL whose log is kept, and processes of their own for the API and for the workers. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Database } from '../../entities/database.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../entities/embedded-postgres.ts';
import { administer, withDatabase } from '../postgres.ts';
import { newFolder, type RunningService, removeFolder, spawnService } from '../spawn.ts';

export interface Process {
  name: string;
  service: RunningService;
  /** What it has said to stderr since it was ready. */
  complaints(): string;
}

export interface World {
  processes: Process[];
  /** Of the API processes, without /v1. */
  urls: string[];
  graphql: string;
  operatorToken: string;
  /** Where the processes keep secrets and simulated machines. */
  dataDir: string;
  db: Database;
  /** What PostgreSQL has written; undefined for that of DATABASE_URL, which writes where it likes. */
  databaseLog(): string | undefined;
  /** @returns how each process ended that did not end well */
  stopProcesses(): Promise<string[]>;
  /** To be called whatever happens. */
  close(): Promise<void>;
}

const ROLES = ['api', 'api', 'worker', 'worker'];
const PLENTY = '100000';
const LIMITS = [
  'API_KEYS',
  'SERVERS',
  'SSH_KEYS',
  'WEBHOOKS',
  'AGENT_ENTRIES',
  'PENDING_TOPUPS',
  'SESSIONS',
  'OAUTH_CLIENTS',
];
/** Limits would hide what is looked for; all else is as it is by default. */
const SETTINGS = {
  ...Object.fromEntries(LIMITS.map((name) => [`LIMIT_${name}`, PLENTY])),
  RATE_LIMIT_ACCOUNT_PER_MINUTE: '1000000',
  RATE_LIMIT_ACCOUNT_PER_HOUR: '1000000',
  LOGIN_FAILURES_MAX: PLENTY,
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  SIMULATED_PAYMENT_SECONDS: '0.2',
  SIMULATED_PROVISION_SECONDS: '0.2',
};
const LOGGING = ['log_lock_waits=on', 'log_min_messages=warning', 'log_error_verbosity=default'];

export async function openWorld(): Promise<World> {
  const dataDir = newFolder();
  const given = process.env.DATABASE_URL;
  const embedded = given ? undefined : await startEmbeddedPostgres(dataDir, LOGGING);
  const name = `freehold_soak_${process.pid}`;
  const server = given ?? embedded!.url;
  await administer(server, `create database ${name}`);
  const url = withDatabase(server, name);
  const db = await Database.open(url, { poolSize: 2 });
  const processes: Process[] = [];
  const close = async () => {
    await Promise.all(processes.map(({ service }) => service.kill()));
    await db.close();
    await administer(server, `drop database ${name} with (force)`);
    await embedded?.stop();
    removeFolder(dataDir);
  };
  try {
    // One after the other: the first makes the secrets that all share.
    for (const [i, role] of ROLES.entries()) {
      const settings = { ...SETTINGS, ROLES: role, DATABASE_URL: url, DATA_DIR: dataDir };
      processes.push(watched(`${role} ${(i % 2) + 1}`, await spawnService(settings)));
    }
  } catch (error) {
    await close();
    throw error;
  }
  const apis = processes.filter(({ name }) => name.startsWith('api')).map(({ service }) => service);
  return {
    processes,
    urls: apis.map((api) => api.url),
    graphql: apis[0]!.graphql,
    operatorToken: apis[0]!.operatorToken,
    dataDir,
    db,
    databaseLog: () => embedded && logOf(embedded),
    stopProcesses: () => stopAll(processes),
    close,
  };
}

function watched(name: string, service: RunningService): Process {
  let complaints = '';
  service.process.stderr!.on('data', (chunk) => (complaints += chunk));
  return { name, service, complaints: () => complaints };
}

const logOf = ({ folder }: EmbeddedPostgres) => readFileSync(join(dirname(folder), 'log'), 'utf8');

async function stopAll(processes: Process[]): Promise<string[]> {
  const ends = processes.map(async ({ name, service }) => {
    const early = service.process.exitCode !== null || service.process.signalCode !== null;
    const code = await service.stop();
    if (early) return [`${name} ended by itself, with ${code ?? service.process.signalCode}.`];
    return code === 0 ? [] : [`${name} ended with ${code ?? service.process.signalCode}.`];
  });
  return (await Promise.all(ends)).flat();
}
