/** The process of a server. Each server has one task for its whole life, so two workers never act on its machine at once. */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { log as logger } from '../../../entities/monitoring/log.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { LOCK_SERVER, READ_SERVER } from '../../../entities/servers/lock.ts';
import { CHANGING, ROOT_PASSWORD, type Server, USER_DATA } from '../../../entities/servers/server.ts';
import { Conflict, done, hop, type LeasedTask, type Outcome, type Process } from '../../tasks/tasks.ts';
import { undoChange } from '../billing/change.ts';
import { reportUnresumed } from '../billing/resume.ts';
import type { HardwareDriver } from '../drivers/driver.ts';
import type { Engines } from '../engines.ts';
import { move } from '../move.ts';
import { giveUpRelocation, readRelocation } from '../placement/relocation.ts';
import { specOf } from '../placement/spec.ts';
import { ATTEMPTS_MAX, partyOf, pauseSeconds, RECONCILE, SERVER_LANE, UNDO } from '../task.ts';
import { abandon } from './outcome.ts';
import { reconcile } from './reconcile.ts';
import { isOutage, noteTrouble } from './trouble.ts';

interface Options {
  db: Database;
  vault: Vault;
  engines: Engines;
  pollSeconds: number;
  /** Seconds. Default: five minutes, and an hour for dedicated servers. */
  proofSeconds?: Record<Server['kind'], number> | undefined;
  /** Takes a line about each failed call of a driver. Default: a warning in the log. */
  log?: ((line: string) => void) | undefined;
}

const PROOF_SECONDS: Record<Server['kind'], number> = { VPS: 300, DEDICATED: 3600 };
/** The steps of tasks that earlier versions wrote. They had given up the change at `restore`. */
const EARLIER = 'claim create prove replace clean change confirm restore suspend resume destroy'.split(' ');

export function serverProcess(options: Options): Process {
  const { db, vault, engines, pollSeconds, proofSeconds = PROOF_SECONDS, log = (line) => logger.warn(line) } = options;
  const toSpec = (server: Server) => {
    const { orderNumber, rootPassword, userData } = server;
    return specOf(db, server, {
      rootPassword: rootPassword && ROOT_PASSWORD.open(vault, rootPassword, orderNumber),
      userData: userData && USER_DATA.open(vault, userData, orderNumber),
    });
  };
  const run = async (task: LeasedTask): Promise<Outcome> => {
    const read = await READ_SERVER.first(db, [task.subject]);
    if (!read || read.status === 'DELETED') return done();
    const { isEngineStopped, ...found } = read;
    const { kind } = found;
    let common = { db, server: found, log, pollSeconds, specOf: toSpec };
    try {
      const driver = waiting(task, await engines.driverOf(found));
      const server = await begun(db, found);
      common = { ...common, server };
      const relocation = await readRelocation(db, server);
      const work = { ...common, driver, relocation, isEngineStopped, proofSeconds: proofSeconds[kind] };
      const isGivenUp = task.step === 'restore' && CHANGING.has(server.status);
      const outcome = isGivenUp ? hop(UNDO, { commit: (tx) => undoChange(tx, server) }) : await reconcile(task, work);
      return underLock(server, outcome);
    } catch (error) {
      await noteTrouble({ ...common, driver: { name: engines.nameOf(found) } }, error);
      throw error;
    }
  };
  return {
    lane: SERVER_LANE,
    attemptsMax: ATTEMPTS_MAX,
    isOutage,
    backoffSeconds: (attempt) => pauseSeconds(pollSeconds, attempt),
    steps: Object.fromEntries([RECONCILE, UNDO, ...EARLIER].map((step) => [step, run])),
    onExhausted: exhausted,
  };
}

/** Begins the work on an order that has its capacity. The lifecycle allows that once, so it needs no lease of the task. */
const begun = async (db: Database, server: Server): Promise<Server> =>
  server.status === 'PENDING' && server.ipv4 ? db.transaction((tx) => move(tx, server, 'PROVISIONING', {})) : server;

/** A driver whose calls give away the place of a task until the engine answers. */
const waiting = (task: LeasedTask, driver: HardwareDriver): HardwareDriver =>
  new Proxy(driver, {
    get: (_, name) => {
      const member: unknown = Reflect.get(driver, name, driver);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => task.waitFor(member.apply(driver, given));
    },
  });

/**
 * Locks the account and the server before the commit of a step, which then locks money, places and tasks. The step runs again if
 * another change has begun meanwhile.
 */
const underLock = (server: Server, outcome: Outcome): Outcome => ({
  ...outcome,
  party: partyOf(server),
  commit:
    outcome.commit &&
    (async (tx) => {
      const locked = await LOCK_SERVER.first(tx, [server.orderNumber]);
      const isSame =
        locked?.status === server.status &&
        locked.change?.id === server.change?.id &&
        locked.change?.endsOff === server.change?.endsOff;
      if (!isSame) throw new Conflict(`${server.orderNumber} has changed meanwhile.`);
      await outcome.commit!(tx);
    }),
});

/**
 * Fails an order, or returns a change to its earlier state, which the worker then restores. The worker never stops to remove,
 * suspend or resume. It stops to mend a machine that should not change, so the operator finds a dead task. After a move that
 * failed, it goes on with the machine where it is.
 */
async function exhausted({ subject, data, step }: LeasedTask, tx: Transaction): Promise<string | undefined> {
  const server = await LOCK_SERVER.first(tx, [subject]);
  const status = server?.status;
  const isKept = server && (await giveUpRelocation(tx, server));
  if (status === 'RUNNING' || status === 'STOPPED') return isKept ? step : undefined;
  if (status === 'SUSPENDED') await reportUnresumed(tx, server!);
  return server && (await abandon(tx, server, data)) ? UNDO : step;
}
