/** The proof that no part of the service lost or doubled an effect while parts of it died. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../entities/database/database.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { isQuiet, machineFaults, rowFaults } from '../soak/requirements.ts';
import { type Load, messagesOf } from './load.ts';

const QUIET_SECONDS_MAX = 120;
const ROOT = join(import.meta.dirname, '../..');

/** Waits until the service has no work left. */
export async function quiet(db: Database): Promise<void> {
  for (let waited = 0; !(await isQuiet(db).catch(() => false)) && waited < QUIET_SECONDS_MAX; waited += 0.2)
    await sleep(200);
}

/** @param dataDir the folder of the simulated machines @returns a sentence for each lost or doubled effect */
export async function faultsOf(db: Database, load: Load, dataDir: string): Promise<string[]> {
  const rows = await rowFaults(db);
  return [
    ...load.faults,
    ...(await effects(db, load)),
    ...(await messages(db, load)),
    ...rows.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`)),
    ...(await machineFaults({ db, dataDir })),
    ...(await proveBooks(db)).faults.map((fault) => JSON.stringify(fault)),
  ];
}

const COUNTS = `
  select (select count(*)::int from server) as servers,
    (select count(*)::int from transfer where kind = 'hold') as holds,
    (select count(*)::int from event where type = 'server.created') as "createdEvents",
    (select count(*)::int from event where type = 'server.deleted') as "deletedEvents",
    (select count(*)::int from top_up where status = 'CONFIRMED') as "topUps",
    (select count(*)::int from transfer where kind = 'topup') as "topUpTransfers"`;

/** Compares the acknowledged effects with the rows of the service. */
async function effects(db: Database, { acknowledged: { servers, deleted, topUps } }: Load): Promise<string[]> {
  const kept = await db.query<{ number: string; hostname: string; status: string }>(
    'select order_number as number, hostname, status from server',
  );
  const found = new Map(kept.map((server) => [server.number, server]));
  const [counts] = await db.query(COUNTS);
  const wanted = {
    servers: servers.size,
    holds: servers.size,
    createdEvents: servers.size,
    deletedEvents: deleted.size,
    topUps: topUps.size,
    topUpTransfers: topUps.size,
  };
  return [
    ...[...servers].flatMap(([number, hostname]) => {
      const server = found.get(number);
      if (!server) return [`The order ${number} was acknowledged, and is lost.`];
      if (deleted.has(number) && server.status !== 'DELETED')
        return [`${number} was deleted, and is ${server.status}.`];
      return server.hostname === hostname ? [] : [`${number} is ${server.hostname}, and not ${hostname}.`];
    }),
    ...(JSON.stringify(counts) === JSON.stringify(wanted)
      ? []
      : [`The database has ${JSON.stringify(counts)} instead of ${JSON.stringify(wanted)}.`]),
  ];
}

/** Each event of a customer must have come to the webhook, at least once and always the same. */
async function messages(db: Database, { customers }: Load): Promise<string[]> {
  const faults: string[] = [];
  for (const customer of customers) {
    const { ids, faults: own } = messagesOf(customer);
    const events = await db.query<{ id: string; type: string }>(
      `select event.id, event.type from event join webhook on webhook.account_id = event.account_id
        where event.account_id = $1 and event.created_at > webhook.created_at and event.type <> 'webhook.test'`,
      [customer.id],
    );
    faults.push(...own, ...events.filter(({ id }) => !ids.has(id)).map(({ id, type }) => `${type} ${id} never came.`));
  }
  return faults;
}

/** Runs a command of the operator. @returns its complaint, if it fails */
export function complaintOf(command: string, args: string[], env: Record<string, string>): string[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'commands', `${command}.ts`), ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env },
    encoding: 'utf8',
  });
  return status === 0 ? [] : [`npm run ${command} failed:\n${stdout}${stderr}`];
}
