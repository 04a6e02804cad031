/** The work whose cost must not grow with the data of others: pages, ticks without anything due, and renewals. */
import { FIND_BALANCE } from '../../entities/accounts/account.ts';
import { FIND_USAGE_TOTAL, LIST_USAGE } from '../../entities/accounts/usage.ts';
import type { Database } from '../../entities/database/database.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { available, SUM_DAYS } from '../../entities/payments/ledger.ts';
import { TopUp } from '../../entities/payments/top-up.ts';
import { Vault } from '../../entities/secrets.ts';
import { LIST_SERVERS } from '../../entities/servers/find.ts';
import { LIST_TASKS } from '../../entities/tasks/task.ts';
import { Provisioning } from '../../provisioning/index.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import type { Observation } from '../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import type { Process } from '../../provisioning/tasks/tasks.ts';
import { accountId } from './seed.ts';

export interface Work {
  name: string;
  /** `page`: one read. `tick`: a round of periodic work. `whole`: it reads everything, so its cost is that of a row. */
  kind: 'page' | 'tick' | 'whole';
  /** Prepares each run, which does not count. */
  before?(): Promise<unknown>;
  run(): Promise<unknown>;
}

/** An engine that has every machine. */
class FullDriver extends SimulatedDriver {
  machines: Observation[] = [];

  override async list(): Promise<Observation[]> {
    return this.machines;
  }

  override async meter(): Promise<[]> {
    return [];
  }
}

const DUE = 1_000;
const YEAR = [new Date(Date.now() - 364 * 86_400_000), new Date()] as const;

/** Runs the steps of periodic work until its next tick. */
async function tick(db: Database, process: Process): Promise<void> {
  let [step, data] = ['start', {} as Record<string, unknown>];
  for (;;) {
    const task = { step, data, aborted: new AbortController().signal, attempts: 1, now: () => new Date() };
    const outcome = await process.steps[step]!(task as never);
    const { commit } = outcome;
    if (commit) await db.transaction(commit);
    [step, data] = [outcome.step ?? step, { ...data, ...outcome.data }];
    if (outcome.afterSeconds > 0 || outcome.kind === 'done') return;
  }
}

/** @param folder for the simulated machines */
export async function allWork(db: Database, folder: string): Promise<Work[]> {
  const [account] = await db.query<{ large: string; small: string }>(
    `select ${accountId('1')} as large, ${accountId('600')} as small`,
  );
  const { large, small } = account!;
  const page = (name: string, run: Work['run']): Work => ({ name, kind: 'page', run });
  const servers = (status: string[] | null, hostname: string | null) => () =>
    LIST_SERVERS.all(db, [51, null, null, status, null, hostname, [], [], null, null]);
  const usage = (id: string) => async () => {
    await FIND_USAGE_TOTAL.first(db, [id, ...YEAR]);
    await LIST_USAGE.all(db, [id, available(id), ...YEAR, null, 51]);
  };
  const driver = new FullDriver({ folder, bootSeconds: 0 });
  const provisioning = new Provisioning({
    ...{ db, vault: new Vault(Buffer.alloc(32)), drivers: { VPS: driver, DEDICATED: driver }, pollSeconds: 600 },
    payments: [new SimulatedPayments({ confirmSeconds: 0 })],
    reverseDns: { url: 'http://127.0.0.1:1', secret: 'whsec_' },
  });
  await provisioning.servers.writeEngines();
  const listMachines = async () => {
    const rows = await db.query<{ order: string; status: string; image: string }>(
      `select order_number as order, status, os as image from server where status <> 'DELETED'`,
    );
    driver.machines = rows.map(({ order, status, image }) => ({
      ...{ order, image, generation: 1, phase: 'present', proven: true },
      power: status === 'RUNNING' ? 'on' : 'off',
    }));
  };
  const parts = [
    provisioning.servers,
    provisioning.payments,
    provisioning.webhooks,
    provisioning.accounts,
    provisioning.agents,
  ];
  const processes: Record<string, Process> = Object.assign({}, ...parts.map((part) => part.processes));
  const ticks = parts
    .flatMap(({ periodic }) => periodic)
    .map((name): Work => {
      const before = name === 'observer' ? { before: listMachines } : {};
      return { name: `a tick of ${name}`, kind: 'tick', ...before, run: () => tick(db, processes[name]!) };
    });
  const makeDue = () =>
    db.query(
      `update server set paid_until = now() - interval '1 second' where id in (
        select id from server where status = 'RUNNING' and account_id <> $1 order by id limit ${DUE})`,
      [large],
    );
  return [
    page('the balance of a small account', () => FIND_BALANCE.first(db, [small])),
    page('the balance of 5,000 servers', () => FIND_BALANCE.first(db, [large])),
    page('a year of the usage of a small account', usage(small)),
    page('a year of the usage of 5,000 servers', usage(large)),
    page('operator: servers by hostname', servers(null, 'web-77.example.org')),
    page('operator: servers in a rare state', servers(['REBUILDING'], null)),
    page('operator: pending top-ups', () =>
      db.manager.find(TopUp, { where: { status: 'PENDING' }, order: { id: 'DESC' }, take: 51 }),
    ),
    page('operator: stuck tasks', () => LIST_TASKS.STUCK.all(db, [50])),
    { name: 'operator: the totals of 30 days', kind: 'whole', run: () => SUM_DAYS.all(db, [30]) },
    ...ticks,
    {
      name: `renewals of ${DUE} servers that are due`,
      kind: 'tick',
      before: makeDue,
      run: () => tick(db, processes.renewals!),
    },
    { name: 'the proof of the books', kind: 'whole', run: () => proveBooks(db) },
  ];
}
