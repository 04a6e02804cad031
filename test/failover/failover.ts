/**
 * `npm run test:failover`: types docs/operate/failover.md on three machines, which are network namespaces. Then it kills each part
 * under load. It exits with 0 only if the service is back within ten seconds, and each acknowledged effect exists once.
 *
 * FAILOVER_SECONDS_MAX sets another limit, and DEATHS the parts to kill.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { Database } from '../../entities/database/database.ts';
import { eventually } from '../setup/freehold.ts';
import { newFolder, removeFolder, UNLIMITED } from '../setup/spawn.ts';
import { SECRET_KEY } from '../setup/vault.ts';
import { addressOf, CUSTOMERS_ADDRESS, type MachineName, SECRETS } from './guide.ts';
import { Load } from './load.ts';
import { Machine, makeNetworks, OUTSIDE, plug, primary, removeNetworks } from './machines.ts';
import { complaintOf, faultsOf, quiet } from './proof.ts';

const SECONDS_MAX = Number(process.env.FAILOVER_SECONDS_MAX ?? 10);
/** The load must go on so far after each kill. */
const ANSWERS_AFTER = 40;
const CUSTOMERS = 4;
const PROGRAMS = ['patroni', 'etcd', 'haproxy', 'keepalived', 'pgbouncer', 'redis-server', 'setpriv', 'ip'];

const ends: (() => unknown)[] = [];
const endAll = async () => {
  for (const end of ends.splice(0).reverse()) await end();
};

/** Why this machine cannot run the guide. */
function missing(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root makes network namespaces';
  const absent = PROGRAMS.filter((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);
  if (absent.length) return `Debian's packages of these programs are not here: ${absent.join(', ')}`;
  try {
    makeNetworks();
    return undefined;
  } catch (error) {
    return `this machine cannot make network namespaces: ${error}`;
  }
}

async function startAll(folder: string): Promise<Record<MachineName, Machine>> {
  const [a, b, c] = (['a', 'b', 'c'] as const).map((name) => new Machine(name, folder)) as [Machine, Machine, Machine];
  ends.push(() => Promise.all([a, b, c].map((machine) => machine.end())));
  for (const machine of [a, b, c]) machine.startEtcd();
  a.startPatroni();
  await primary(true);
  b.startPatroni();
  await primary();
  c.startRedis();
  for (const machine of [a, b]) machine.startProxies();
  await eventually(
    async () => spawnSync('ip', ['netns', 'exec', 'fh-a', 'bash', '-c', '</dev/tcp/127.0.0.1/5000']).status === 0,
  );
  await eventually(async () => {
    try {
      a.type('psql');
      return true;
    } catch (error) {
      if (!/server closed|refused|read-only/.test(String(error))) throw error;
      return false;
    }
  });
  const settings = {
    ...UNLIMITED,
    SECRET_KEY,
    // The simulated machines lie here, so that both workers find them.
    DATA_DIR: `${folder}/data`,
    LIMIT_SERVERS: '100000',
    LIMIT_UNPAID_TOPUPS_PER_DAY: '100000',
    WEBHOOK_ALLOW_CIDRS: '203.0.113.0/24',
    SIMULATED_PAYMENT_SECONDS: '0.2',
    SIMULATED_PROVISION_SECONDS: '0.2',
  };
  for (const machine of [a, b]) {
    machine.startService(settings);
    await ready(machine.name);
  }
  return { a, b, c };
}

const ready = (machine: MachineName) =>
  eventually(async () => {
    const looks = [3001, 3011].map((port) => fetch(`http://${addressOf(machine)}:${port}/readyz`).then(({ ok }) => ok));
    return (await Promise.all(looks).catch(() => [false])).every(Boolean);
  });

/** The death of a part, and its repair if no unit brings it back. */
interface Death {
  name: string;
  kill(machines: Record<MachineName, Machine>, primary: MachineName): void;
  repair?(primary: MachineName): void;
}

const unit = (which: string): Death => ({
  name: which,
  kill: (machines, lead) => (which === 'redis' ? machines.c : machines[lead]).units[which]!.kill(),
});

const DEATHS: readonly Death[] = [
  unit('worker'),
  unit('api'),
  unit('pgbouncer'),
  unit('redis'),
  unit('haproxy'),
  unit('etcd'),
  unit('patroni'),
  { name: 'PostgreSQL of the primary', kill: (machines, lead) => machines[lead].killPostgres() },
  { name: 'PostgreSQL of the standby', kill: (machines, lead) => machines[other(lead)].killPostgres() },
  { name: 'the machine of the primary', kill: (_, lead) => plug(lead, false), repair: (lead) => plug(lead, true) },
  {
    name: 'the machine of the standby',
    kill: (_, lead) => plug(other(lead), false),
    repair: (lead) => plug(other(lead), true),
  },
  { name: 'machine c', kill: () => plug('c', false), repair: () => plug('c', true) },
];
const other = (machine: MachineName): MachineName => (machine === 'a' ? 'b' : 'a');

/** @returns the longest time without an acknowledged change */
async function die(death: Death, machines: Record<MachineName, Machine>, load: Load): Promise<number> {
  const lead = await primary();
  const killedAt = performance.now();
  death.kill(machines, lead);
  const goesOn = async () => {
    const before = load.answers.length;
    await eventually(async () => load.answers.length > before + ANSWERS_AFTER || load.isStuck, 60);
  };
  // Answers that were under way may still come.
  await new Promise((resume) => setTimeout(resume, 2_000));
  await goesOn();
  const { gapSeconds, callSeconds } = load.since(killedAt);
  const delivered = load.deliveries.filter(({ at, seconds }) => at + seconds * 1000 > killedAt);
  const slowest = Math.max(0, ...delivered.map(({ seconds }) => seconds));
  console.log(
    `${death.name}: ${gapSeconds.toFixed(1)} s without a change, the longest call ${callSeconds.toFixed(1)} s, the slowest order ${slowest.toFixed(1)} s`,
  );
  death.repair?.(lead);
  await primary();
  await Promise.all((['a', 'b'] as const).map(ready));
  await goesOn();
  return gapSeconds;
}

async function failover(): Promise<boolean> {
  ends.push(removeNetworks);
  const reason = missing();
  if (reason) {
    console.log(`Skipped: the guide to several machines, because ${reason}.`);
    return true;
  }
  const folder = newFolder();
  chmodSync(folder, 0o755);
  ends.push(() => process.env.KEEP || removeFolder(folder));
  const machines = await startAll(folder);
  // The certificate names another host.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  process.removeAllListeners('warning');
  const load = new Load({ urls: [`https://${CUSTOMERS_ADDRESS}`], customers: CUSTOMERS, host: OUTSIDE });
  ends.push(() => load.close());
  await load.start();
  const only = process.env.DEATHS?.split(',');
  const slow: string[] = [];
  for (const death of DEATHS.filter(({ name }) => !only || only.includes(name))) {
    if (load.isStuck) break;
    const seconds = await die(death, machines, load);
    if (seconds > SECONDS_MAX) slow.push(`${death.name}: no change for ${seconds.toFixed(1)} s`);
  }
  await load.stop();
  const faults = [...slow, ...(await proof(load, folder))];
  console.log(`${load.answers.length} answers, ${load.acknowledged.servers.size} orders.`);
  console.log(
    faults.length ? `Lost, doubled, late or wrong:\n${faults.join('\n')}` : 'Nothing is lost, and nothing doubled.',
  );
  return !faults.length;
}

async function proof(load: Load, folder: string): Promise<string[]> {
  const host = addressOf(await primary());
  const url = `postgres://freehold_service:${SECRETS.SERVICE}@${host}/freehold`;
  const ownerUrl = `postgres://freehold_owner:${SECRETS.OWNER}@${host}/freehold`;
  const db = await Database.open(url, { poolSize: 2, ownerUrl });
  try {
    await quiet(db);
    const verified = complaintOf('verify', [], { DATABASE_URL: url, DATA_DIR: `${folder}/data`, SECRET_KEY });
    return [...(await faultsOf(db, load, `${folder}/data`)), ...verified];
  } finally {
    await db.close();
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void endAll().finally(() => process.exit(1)));
try {
  process.exitCode = (await failover()) ? 0 : 1;
} finally {
  await endAll();
}
