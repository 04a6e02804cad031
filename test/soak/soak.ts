/**
 * `npm run test:soak`: REST, MCP and GraphQL clients work on the same accounts at once, and paid months end quickly.
 * Two API and two worker processes serve accounts that use every feature. It exits with 0 only if nothing went wrong.
 *
 * SOAK_SECONDS sets the duration, and SOAK_SEED repeats the choices of each client, though not their timing.
 * SOAK_PAUSE_MS sets the mean pause of a client, and SOAK_ANSWER_MS_MAX the limit of an answer.
 */
import { cpus } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds } from '../../bench/report.ts';
import { type Account, openAccount } from './account.ts';
import { type Shift, work } from './actor.ts';
import { CALENDAR_OPERATIONS } from './calendar.ts';
import { Chance } from './chance.ts';
import { newCrew } from './crew.ts';
import { collisionsIn } from './database-log.ts';
import { Measurements } from './measurements.ts';
import { graphqlAsker, OPERATOR_OPERATIONS, openShop, watchServers } from './operator.ts';
import { table, verdict } from './report.ts';
import { isQuiet, requirementsOf } from './requirements.ts';
import { openWorld, type World } from './world.ts';

const SECONDS = Number(process.env.SOAK_SECONDS ?? 180);
const SEED = Number(process.env.SOAK_SEED ?? Date.now() % 1e9);
const PAUSE_MS = Number(process.env.SOAK_PAUSE_MS ?? 500);
const ANSWER_MS_MAX = Number(process.env.SOAK_ANSWER_MS_MAX ?? 1_000);
const ACCOUNTS = 4;
/** The mean pause of the operator and of the calendar. */
const OTHER_PAUSE_MS = 800;
/** The service repeats a refused message after six seconds at most. All other work ends sooner. */
const QUIET_SECONDS_MAX = 60;

const ends: (() => Promise<unknown>)[] = [];
const endAll = async () => {
  for (const end of ends.splice(0).reverse()) await end();
};
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void endAll().finally(() => process.exit(1)));
try {
  process.exitCode = (await soak(await openWorld((end) => ends.push(end)))) ? 0 : 1;
} finally {
  await endAll();
}

async function soak(world: World): Promise<boolean> {
  console.log(`To repeat the operations of these clients, set SOAK_SECONDS=${SECONDS} SOAK_SEED=${SEED}.`);
  const measurements = new Measurements();
  const ask = graphqlAsker(world.graphql, world.operatorToken, measurements);
  const subscription = watchServers(world.graphql, world.operatorToken);
  await openShop({ ask });
  const openings = Array.from({ length: ACCOUNTS }, (_, number) => ({
    number,
    who: `account ${number}`,
    urls: world.urls,
    measurements,
    chance: new Chance(SEED, `account ${number}`),
    // The operator suspends the last account now and then.
    always: number === ACCOUNTS - 1 ? ['account_suspended'] : [],
  }));
  const accounts = await Promise.all(openings.map(openAccount));
  const crews = await Promise.all(accounts.map((account, i) => newCrew(account, openings[i]!, SEED)));
  const members = crews.flat();

  const load = measureLoad(world);
  const over = AbortSignal.timeout(SECONDS * 1000);
  const shift = { pauseMs: PAUSE_MS, over };
  const slowShift = { pauseMs: OTHER_PAUSE_MS, over };
  await Promise.all([
    ...members.map((member) => work(member, member.operations, shift)),
    ...others(world, accounts, measurements, ask, slowShift),
  ]);
  const loaded = load();
  const quietAfter = await quiet(world);

  const heard = new Set(subscription.messages.map(({ serverUpdated }) => serverUpdated?.server.orderNumber as string));
  const watched = { heard, failure: subscription.failure(), over: subscription.over() };
  const requirements = await requirementsOf({ world, accounts, measurements, watched, answerMsMax: ANSWER_MS_MAX });
  subscription.dispose();
  await Promise.all([
    ...members.map(({ api }) => api.close()),
    ...accounts.flatMap(({ mailboxes }) => mailboxes.map((mailbox) => mailbox.close())),
  ]);
  requirements.push({ name: 'Every process stops as it should', faults: await world.stopProcesses() });

  console.log(`\n${table(measurements.answers)}\n\n${loaded}`);
  const { lockWaits } = collisionsIn(world.databaseLog() ?? '');
  for (const wait of lockWaits.slice(0, 3)) console.log(`Waited for a lock for more than a second, ${wait}`);
  console.log(
    quietAfter === undefined
      ? `It was not quiet within ${QUIET_SECONDS_MAX} s.`
      : `It was quiet after ${quietAfter.toFixed(1)} s.`,
  );
  const hooks = accounts.flatMap(({ hooks }) => hooks);
  const came = hooks.reduce((sum, { mailbox }) => sum + mailbox.events.size, 0);
  console.log(`${hooks.length} permanent webhooks received ${came} events.`);
  console.log(await tally(world));
  console.log(`\n${verdict(requirements)}`);
  return requirements.every(({ faults }) => !faults.length);
}

function others(
  world: World,
  accounts: Account[],
  measurements: Measurements,
  ask: ReturnType<typeof graphqlAsker>,
  shift: Shift,
) {
  const of = (name: string) => ({ name, chance: new Chance(SEED, name), measurements });
  const operator = { ...of('operator'), ask, accounts, suspended: accounts.at(-1)! };
  return [
    work(operator, OPERATOR_OPERATIONS, shift),
    work({ ...of('calendar'), db: world.db }, CALENDAR_OPERATIONS, shift),
  ];
}

/** Waits until the service has no work left. @returns the seconds it took, or undefined */
async function quiet({ db }: World): Promise<number | undefined> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  for (; seconds() < QUIET_SECONDS_MAX; await sleep(200)) if (await isQuiet(db)) return seconds();
  return undefined;
}

/** Measures the load of the machine, and the delay of this process itself, which would distort the times. */
function measureLoad({ processes }: World): () => string {
  const delay = monitorEventLoopDelay();
  delay.enable();
  const busy = () => {
    const times = cpus().map(({ times: { user, nice, sys, irq, idle } }) => [user + nice + sys + irq, idle] as const);
    return [times.reduce((sum, [used]) => sum + used, 0), times.reduce((sum, [, idle]) => sum + idle, 0)] as const;
  };
  const used = () => [
    ...processes.map(({ service }) => cpuSeconds(service.process.pid!)),
    process.cpuUsage().user / 1e6,
  ];
  const [before, usedBefore] = [busy(), used()];
  return () => {
    const [working, idle] = busy().map((now, i) => now - before[i]!) as [number, number];
    const shares = used().map(
      (now, i) => `${processes[i]?.name ?? 'the soak itself'} ${(now - usedBefore[i]!).toFixed(1)} s`,
    );
    return [
      `The machine was busy for ${((100 * working) / (working + idle)).toFixed(0)} % of the time: ${shares.join(', ')}.`,
      `The soak itself was at most ${(delay.max / 1e6).toFixed(0)} ms late.`,
    ].join('\n');
  };
}

/** Counts the events, so that a reader sees the work that the soak caused. */
async function tally({ db }: World): Promise<string> {
  const events = await db.query<{ type: string; count: number }>(
    'select type, count(*)::int as count from event group by 1 order by 2 desc, 1',
  );
  return `Events: ${events.map(({ type, count }) => `${type} ${count}`).join(', ')}`;
}
