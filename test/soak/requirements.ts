/** The requirements that every soak must meet. */
import { join } from 'node:path';
import type { Database } from '../../entities/database/database.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import type { Account } from './account.ts';
import { collisionsIn } from './database-log.ts';
import { eventsFor } from './deliveries.ts';
import type { Measurements } from './measurements.ts';
import type { World } from './world.ts';

export interface Requirement {
  name: string;
  /** The requirement is met if there are none. */
  faults: string[];
}

/** Each query describes the rows that should not exist once the service is quiet. */
const ROWS: readonly (readonly [name: string, sql: string])[] = [
  [
    'No server is on its way',
    `select order_number || ' is ' || status as fault from server
      where status not in ('RUNNING', 'STOPPED', 'SUSPENDED', 'FAILED', 'DELETED') or (change is not null and status <> 'DELETED')`,
  ],
  [
    'No order and no change of a server failed',
    `select event.subject || ' ' || event.type || ': ' || data::text || coalesce(' ' || failure_message, '') as fault
      from event left join server on order_number = subject where event.type in ('server.failed', 'server.action_failed')`,
  ],
  [
    'No task is dead, late, or failing',
    `select subject || ' at ' || step || ' of ' || process || ' is ' || state || ', due ' || run_at || ', tried ' || attempts || coalesce(': ' || error, '') as fault
      from task where state = 'DEAD' or run_at < now() - interval '5 seconds' or (error is not null and attempts > 0)`,
  ],
  [
    'No top-up is open',
    `select order_number || ' is ' || status as fault from top_up where status in ('PENDING', 'CONFIRMING')`,
  ],
  [
    'Every delivery of a webhook succeeded',
    `select delivery.id || ' of ' || event_type || ' is ' || delivery.status || ' after ' || attempts || coalesce(': ' || error, '') as fault
      from webhook_delivery delivery join webhook on webhook.id = webhook_id where delivery.status <> 'SUCCEEDED'`,
  ],
  ['No webhook was disabled', `select id || ': ' || disabled_reason as fault from webhook where status <> 'ENABLED'`],
  [
    'No money is held',
    `select account_id || ' holds ' || held_micros || ' micro-USD' as fault from balance where held_micros <> 0`,
  ],
  [
    'Each live server has its addresses, and nothing else has any',
    `select coalesce(order_number, held_by) || ' is ' || coalesce(status, 'unknown') || ' and holds ' || coalesce(held, 0) || ' addresses' as fault
      from (select held_by, count(*) as held from address where held_by is not null group by 1) as claims
      full join (select order_number, status from server where status not in ('FAILED', 'DELETED')) as live on order_number = held_by
      where coalesce(held, 0) <> 2 or order_number is null`,
  ],
  [
    'Each live server holds the one place of its tier',
    `select coalesce(live.order_number, place.order_number) || ' holds ' || count(place.number) || ' places of ' || coalesce(live.service_code, 'nothing') as fault
      from (select * from server where status not in ('FAILED', 'DELETED')) as live
      full join (select * from place where order_number is not null) as place
        on place.order_number = live.order_number and region_code = region and place.service_code = live.service_code
      group by live.order_number, place.order_number, live.service_code having count(place.number) <> 1 or live.order_number is null`,
  ],
  [
    'No API key spent more than its limit',
    `select api_key.id || ' spent ' || sum(spent.amount_micros - coalesce(released.amount_micros, 0)) || ' of ' || spend_limit_micros as fault
      from api_key join transfer spent on credential_id = api_key.id and spent.debit = 'available:' || spent.account_id
      left join transfer released on spent.kind = 'hold' and released.external_key = 'release:' || split_part(spent.external_key, ':', 2)
      where spend_limit_micros is not null
      group by api_key.id, spend_limit_micros having sum(spent.amount_micros - coalesce(released.amount_micros, 0)) > spend_limit_micros`,
  ],
];

/** The service still has work to do while one of these finds a row. */
const QUIET = ROWS.filter(([name]) => /on its way|No task|top-up|delivery|money/.test(name));

export async function isQuiet(db: Database): Promise<boolean> {
  for (const [, sql] of QUIET) if ((await db.query(`${sql} limit 1`)).length) return false;
  return true;
}

export interface Found {
  world: World;
  accounts: readonly Account[];
  measurements: Measurements;
  /** The order numbers that the operator's subscription reported, and its end. */
  watched: { heard: ReadonlySet<string>; failure: unknown; over: boolean };
  answerMsMax: number;
}

/** Checks everything. The processes must still run. */
export async function requirementsOf(found: Found): Promise<Requirement[]> {
  const { world, accounts } = found;
  const requirements = [...answers(found), ...(await collisions(world)), ...(await rowFaults(world.db))];
  const add = (name: string, faults: string[]) => requirements.push({ name, faults });
  const proof = await proveBooks(world.db);
  add(
    'The books balance',
    proof.faults.map((fault) => JSON.stringify(fault)),
  );
  add('Each live server has its machine, and no other machine is left', await machineFaults(world));
  add('Each event came to every webhook that wants it', await eventsFor(world.db, accounts));
  add(
    'The signature of every webhook message was correct',
    accounts.flatMap(({ mailboxes }) => mailboxes.flatMap((mailbox) => mailbox.faults)),
  );
  add("The operator's subscription heard of every server", await unheard(world.db, found.watched));
  add(
    'No process complained',
    world.processes.flatMap(({ name, complaints }) => entriesOf(complaints()).map((entry) => `${name}: ${entry}`)),
  );
  return requirements;
}

function answers({ measurements, answerMsMax }: Found): Requirement[] {
  const { broken, surprises } = measurements;
  const slow = measurements.answers
    .filter(({ ms, waits }) => !waits && ms > answerMsMax)
    .toSorted((a, b) => b.ms - a.ms);
  return [
    { name: 'No answer says that something broke, and each came', faults: broken },
    { name: 'Every answer was expected', faults: surprises },
    {
      name: `No answer took more than ${answerMsMax} ms`,
      faults: slow.map(({ name, ms, code, at }) => `${at.toISOString()} ${name}: ${code} after ${ms.toFixed(0)} ms`),
    },
  ];
}

/** PostgreSQL also counts deadlocks, which helps where its log is out of reach. */
async function collisions({ db, databaseLog }: World): Promise<Requirement[]> {
  const [counted] = await db.query<{ deadlocks: bigint }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  const log = databaseLog();
  const { deadlocks, serialization } = collisionsIn(log ?? '');
  const count = Number(counted!.deadlocks);
  if (count) deadlocks.unshift(`PostgreSQL counted ${count} of them.`);
  return [
    { name: 'There was no deadlock', faults: deadlocks },
    ...(log === undefined ? [] : [{ name: 'No transaction failed to serialize', faults: serialization }]),
  ];
}

/** Looks for rows that should not exist once the service is quiet. */
export async function rowFaults(db: Database): Promise<Requirement[]> {
  const found: Requirement[] = [];
  for (const [name, sql] of ROWS)
    found.push({ name, faults: (await db.query<{ fault: string }>(sql)).map(({ fault }) => fault) });
  return found;
}

/** Compares the servers with the simulated machines. */
export async function machineFaults({ db, dataDir }: Pick<World, 'db' | 'dataDir'>): Promise<string[]> {
  const driver = new SimulatedDriver({ folder: join(dataDir, 'machines'), bootSeconds: 0 });
  const servers = await db.query<{ order: string; generation: number; status: string }>(
    `select order_number as "order", generation, status from server where status not in ('FAILED', 'DELETED')`,
  );
  const wanted = new Map(servers.map(({ order, generation, status }) => [`${order}.${generation}`, status]));
  const faults: string[] = [];
  for (const { order, generation, power } of await driver.list()) {
    const status = wanted.get(`${order}.${generation}`);
    wanted.delete(`${order}.${generation}`);
    if (power !== (status === 'RUNNING' ? 'on' : status && 'off'))
      faults.push(`The machine of ${order} is ${power}, and the server is ${status ?? 'gone'}.`);
  }
  return [...faults, ...[...wanted].map(([machine, status]) => `${machine} is ${status}, and has no machine.`)];
}

async function unheard(db: Database, { heard, failure, over }: Found['watched']): Promise<string[]> {
  const servers = await db.query<{ number: string }>('select order_number as number from server');
  return [
    ...(failure || over ? [`It ended: ${JSON.stringify(failure)}`] : []),
    ...servers.filter(({ number }) => !heard.has(number)).map(({ number }) => `It never told of ${number}.`),
  ];
}

/** Splits the output into entries. A line without indentation begins an entry, unless it closes a bracket. */
const entriesOf = (complaints: string): string[] =>
  complaints
    .split(/\n(?=[^\s\]})])/)
    .map((entry) => entry.replace(/\s+/g, ' ').trim())
    .filter(Boolean);
