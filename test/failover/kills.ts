/**
 * `npm run test:kills`: kill -9 of a worker, an API process and PostgreSQL in turn, under load. Half of them die while a worker
 * writes an archive. It exits with 0 only if no acknowledged effect is lost or doubled, and each archive is whole.
 *
 * KILLS sets the number of deaths of each.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Database } from '../../entities/database/database.ts';
import { type Cluster, ENVIRONMENT, placeCluster } from '../../entities/database/embedded/cluster.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { eventually } from '../setup/freehold.ts';
import { freePort, graphqlClient, newFolder, type RunningService, removeFolder, spawnService } from '../setup/spawn.ts';
import { SECRET_KEY } from '../setup/vault.ts';
import { Load } from './load.ts';
import { complaintOf, faultsOf, quiet } from './proof.ts';

const KILLS = Number(process.env.KILLS ?? 2);
const CUSTOMERS = 6;
/** The load must go on so far between two kills. */
const ANSWERS_BETWEEN = 10;
const PARTIAL = '.partial';
const SETTINGS = {
  SECRET_KEY,
  LEASE_SECONDS: '5',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  LIMIT_SERVERS: '100000',
  LIMIT_UNPAID_TOPUPS_PER_DAY: '100000',
  SIMULATED_PAYMENT_SECONDS: '0.2',
  SIMULATED_PROVISION_SECONDS: '0.2',
};

const ends: (() => unknown)[] = [];
const endAll = async () => {
  for (const end of ends.splice(0).reverse()) await end();
};
/** A part that starts again after each death, as under a supervisor. */
interface Part {
  name: string;
  /** Has the process of the part, once it is ready. */
  ready(): Promise<number>;
  /** Ends the part for ever. */
  end(): Promise<void>;
}

function keep(name: string, start: () => Promise<ChildProcess>): Part {
  let over = false;
  let child: ChildProcess | undefined;
  let starting = Promise.resolve(0);
  const begin = async (): Promise<number> => {
    for (;;) {
      if (over) return 0;
      child = await start().catch(() => undefined);
      if (child && child.exitCode === null && child.signalCode === null) break;
      await sleep(100);
    }
    const started = child!;
    started.once('exit', () => {
      if (!over) starting = begin();
    });
    return started.pid!;
  };
  starting = begin();
  return {
    name,
    ready: async () => {
      // It may have died meanwhile, without a word yet.
      for (;;) {
        const pid = await starting;
        if (over || (child?.pid === pid && child.exitCode === null && child.signalCode === null)) return pid;
        await sleep(10);
      }
    },
    end: async () => {
      over = true;
      await starting;
      if (child && child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    },
  };
}

/** Starts the server of a cluster on one port. Sessions of its killed predecessor make it end, and so does its own death. */
async function startPostgres({ binaries, folder, identity }: Cluster, port: number, url: string) {
  const log = openSync(join(folder, '..', 'kills.log'), 'a');
  const flags = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200'];
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', folder, '-p', `${port}`, ...flags.flatMap((flag) => ['-c', flag])],
    { ...identity, cwd: folder, env: ENVIRONMENT, stdio: ['ignore', log, log] },
  );
  while (server.exitCode === null && !(await answers(url))) await sleep(50);
  return server;
}

const answers = async (url: string) => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 }).on('error', () => {});
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
};

async function openWorld() {
  const dataDir = newFolder();
  ends.push(() => removeFolder(dataDir));
  const embedded = await startEmbeddedPostgres(dataDir);
  const port = `${await freePort()}`;
  const [url, ownerUrl] = [embedded.url, embedded.ownerUrl].map((one) => Object.assign(new URL(one), { port }).href);
  await embedded.stop();
  const cluster = await placeCluster(dataDir, () => {});
  const postgres = keep('PostgreSQL', () => startPostgres(cluster, Number(port), ownerUrl!));
  ends.push(postgres.end);
  await postgres.ready();
  const db = await Database.open(url!, { poolSize: 2, ownerUrl: ownerUrl! });
  ends.push(() => db.close());
  const archives = join(dataDir, 'archives');
  mkdirSync(archives);
  const database = { DATABASE_URL: url!, DATA_DIR: dataDir, SECRET_KEY };
  const services: RunningService[] = [];
  const urls: string[] = [];
  const service = async (role: 'api' | 'worker', i: number) => {
    const [PORT, INTERNAL_PORT] = [`${await freePort()}`, `${await freePort()}`];
    if (role === 'api') urls.push(`http://127.0.0.1:${PORT}`);
    const settings = { ...SETTINGS, ...database, ROLES: role, ARCHIVE_DIR: archives, PORT, INTERNAL_PORT };
    const name = `${role} ${i}`;
    const part = keep(name, async () => {
      const started = await spawnService(settings);
      services.push(started);
      return started.process;
    });
    ends.push(part.end);
    await part.ready();
    return part;
  };
  const parts = {
    PostgreSQL: [postgres],
    api: [await service('api', 1), await service('api', 2)],
    worker: [await service('worker', 1), await service('worker', 2)],
  };
  return { db, dataDir, archives, parts, urls, database, services };
}
type World = Awaited<ReturnType<typeof openWorld>>;
type Kind = keyof World['parts'];

/** Lets a worker begin an archive. @returns the process that writes it */
async function exporting({ db, archives, parts: { worker } }: World): Promise<number> {
  const pids = await Promise.all(worker.map(({ ready }) => ready()));
  for (;;) {
    await db
      .query(`update task set run_at = now() where subject = 'cron:daily-archive' and leased_by is null`)
      .catch(() => {});
    for (let look = 0; look < 500; look++, await sleep(2)) {
      if (!readdirSync(archives).some((name) => name.endsWith(PARTIAL))) continue;
      const pid = pids.find((one) => filesOf(one).some((file) => file.endsWith(PARTIAL)));
      if (pid) return pid;
    }
  }
}

/** The files that a process has open. */
function filesOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))];
    } catch {
      return [];
    }
  });
}

/** Kills one process, and waits until all are back and the load goes on. @returns the seconds without an answer */
async function killOne(world: World, load: Load, kind: Kind, isExport: boolean, n: number) {
  const parts = world.parts[kind];
  const writer = isExport ? await exporting(world) : undefined;
  const chosen = await parts[n % parts.length]!.ready();
  const killedAt = performance.now();
  process.kill(kind === 'worker' && writer ? writer : chosen, 'SIGKILL');
  await Promise.all(Object.values(world.parts).flatMap((all) => all.map(({ ready }) => ready())));
  const before = load.answers.length;
  await eventually(async () => load.answers.length > before + ANSWERS_BETWEEN || load.isStuck);
  return load.since(killedAt);
}

async function kills(): Promise<boolean> {
  const world = await openWorld();
  await openStock(world.services[0]!);
  const load = new Load({ urls: world.urls, customers: CUSTOMERS });
  ends.push(() => load.close());
  await load.start();
  const worst: Record<string, number[]> = {};
  for (let n = 0; n < KILLS && !load.isStuck; n++)
    for (const kind of ['worker', 'api', 'PostgreSQL'] as const) {
      const isExport = n % 2 === 0;
      const { gapSeconds, callSeconds } = await killOne(world, load, kind, isExport, n >> 1);
      const what = `${kind}${isExport ? ' during an export' : ''}`;
      worst[what] = [...(worst[what] ?? []), callSeconds];
      console.log(
        `${n + 1}. ${what}: ${gapSeconds.toFixed(1)} s without a change, the longest call ${callSeconds.toFixed(1)} s`,
      );
    }
  await load.stop();
  await world.db.query(`update task set run_at = now() where subject = 'cron:daily-archive'`);
  await quiet(world.db);
  const faults = [...(await faultsOf(world.db, load, world.dataDir)), ...commands(world)];
  if (faults.length) console.log(errorsIn(world));
  report(load, worst, faults);
  return !faults.length;
}

/** Proves the audit log and each archive. */
function commands({ archives, database }: World): string[] {
  const files = readdirSync(archives).filter((name) => !name.endsWith(PARTIAL));
  console.log(`${files.length} archives are complete.`);
  return [
    ...complaintOf('verify', [], database),
    ...(files.length ? [] : ['No archive is complete.']),
    ...files.flatMap((name) => complaintOf('import', ['--check', join(archives, name)], database)),
  ];
}

/** The lines of the services that tell of their own faults. */
const errorsIn = ({ services }: World): string =>
  services
    .flatMap((service) => service.output().split('\n'))
    .filter((line) => line.includes('"level":"error"'))
    .join('\n');

async function openStock({ graphql, operatorToken }: RunningService): Promise<void> {
  const operator = graphqlClient(graphql, operatorToken);
  for (const region of ['ams', 'zrh', 'kef', 'buh'])
    await operator(`mutation { setStock(region: "${region}", serviceCode: "vps-1", total: 1000) { total } }`);
}

function report(
  { acknowledged, answers, deliveries, customers }: Load,
  worst: Record<string, number[]>,
  faults: string[],
) {
  for (const [what, seconds] of Object.entries(worst)) {
    const sorted = seconds.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(1);
    console.log(
      `${seconds.length} kills of ${what}: the longest call ${at(0.5)} s in half of them, ${at(1)} s at most`,
    );
  }
  const slowest = Math.max(...deliveries.map(({ seconds }) => seconds));
  const messages = customers.reduce((sum, { receiver }) => sum + receiver.received.length, 0);
  console.log(
    `${answers.length} answers, ${acknowledged.servers.size} orders, ${acknowledged.topUps.size} top-ups, ${messages} messages. ` +
      `The slowest machine ran after ${slowest.toFixed(1)} s.`,
  );
  console.log(
    faults.length ? `Lost, doubled or wrong:\n${faults.join('\n')}` : 'Nothing is lost, and nothing doubled.',
  );
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void endAll().finally(() => process.exit(1)));
try {
  process.exitCode = (await kills()) ? 0 : 1;
} finally {
  await endAll();
}
