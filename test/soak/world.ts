/** The installation: one PostgreSQL with its log, two API processes and two worker processes. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Database } from '../../entities/database/database.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { administer, withDatabase } from '../setup/postgres.ts';
import { newFolder, type RunningService, removeFolder, spawnService } from '../setup/spawn.ts';

export interface Process {
  name: string;
  service: RunningService;
  /** The output to stderr since the process was ready. */
  complaints(): string;
}

export interface World {
  processes: Process[];
  /** The addresses of the API processes, without /v1. */
  urls: string[];
  graphql: string;
  operatorToken: string;
  /** The folder of the secrets and of the simulated machines. */
  dataDir: string;
  db: Database;
  /** The log of PostgreSQL, or undefined if DATABASE_URL names a server whose log is out of reach. */
  databaseLog(): string | undefined;
  /** @returns a sentence for each process that ended badly */
  stopProcesses(): Promise<string[]>;
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
  'UNPAID_TOPUPS_PER_DAY',
  'OPEN_PAYMENTS',
  'SESSIONS',
  'OAUTH_CLIENTS',
];
/** Limits would hide faults, so they are raised. All other settings keep their defaults. */
const SETTINGS = {
  ...Object.fromEntries(LIMITS.map((name) => [`LIMIT_${name}`, PLENTY])),
  RATE_LIMIT_ACCOUNT_PER_MINUTE: '1000000',
  RATE_LIMIT_ACCOUNT_PER_HOUR: '1000000',
  RATE_LIMIT_UNPAID_PER_HOUR: '1000000',
  LOGIN_FAILURES_MAX: PLENTY,
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  SIMULATED_PAYMENT_SECONDS: '0.2',
  SIMULATED_PROVISION_SECONDS: '0.2',
};
const LOGGING = ['log_lock_waits=on', 'log_min_messages=warning', 'log_error_verbosity=default'];

/** @param onEnd takes a function for each opened thing; the caller must end the last one first */
export async function openWorld(onEnd: (end: () => Promise<unknown>) => void): Promise<World> {
  const dataDir = newFolder();
  onEnd(async () => removeFolder(dataDir));
  const given = process.env.DATABASE_URL;
  const embedded = given ? undefined : await startEmbeddedPostgres(dataDir, LOGGING);
  if (embedded) onEnd(embedded.stop);
  const name = `freehold_soak_${process.pid}`;
  const server = given ?? embedded!.ownerUrl;
  await administer(server, `create database ${name}`);
  onEnd(() => administer(server, `drop database ${name} with (force)`));
  const url = withDatabase(embedded?.url ?? server, name);
  const ownerUrl = withDatabase(server, name);
  const db = await Database.open(url, { poolSize: 2, ownerUrl });
  onEnd(() => db.close());
  const processes: Process[] = [];
  // They start one after the other, since the first makes the shared secrets.
  for (const [i, role] of ROLES.entries()) {
    const service = await spawnService({ ...SETTINGS, ROLES: role, DATABASE_URL: url, DATA_DIR: dataDir });
    onEnd(() => service.kill());
    processes.push(watched(`${role} ${(i % 2) + 1}`, service));
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
