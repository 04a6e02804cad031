/** The process of a server. Each server has one task for its whole life, so two workers never act on its machine at once. */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { LOCK_SERVER, LOCK_SERVER_ONLY, READ_SERVER } from '../../../entities/servers/lock.ts';
import {
  CHANGING,
  ROOT_PASSWORD,
  type Server,
  type ServerStatus,
  USER_DATA,
} from '../../../entities/servers/server.ts';
import { done, hop, type LeasedTask, type Outcome, type Process } from '../../tasks/tasks.ts';
import type { HardwareDriver } from '../drivers/driver.ts';
import { specOf } from '../placement/spec.ts';
import { change, confirm, fallBack, restore } from './change.ts';
import { claim, clean, create, prove } from './create.ts';
import { destroy } from './delete.ts';
import { undeliverable } from './outcome.ts';
import { replace } from './recovery.ts';
import { persist, powerOn } from './resume.ts';
import type { ServerStep } from './step.ts';
import { powerOff } from './suspend.ts';
import { ATTEMPTS_MAX, partyOf, pauseSeconds, SERVER_LANE } from './task.ts';
import { isOutage, noteTrouble } from './trouble.ts';

interface Options {
  db: Database;
  vault: Vault;
  drivers: Record<Server['kind'], HardwareDriver>;
  pollSeconds: number;
  /** Seconds. Default: five minutes, and an hour for dedicated servers. */
  proofSeconds?: Record<Server['kind'], number> | undefined;
  /** Takes a line about each failed call of a driver. Default: the standard error output. */
  log?: ((line: string) => void) | undefined;
}

const PROOF_SECONDS: Record<Server['kind'], number> = { VPS: 300, DEDICATED: 3600 };

export function serverProcess(options: Options): Process {
  const { db, vault, drivers, pollSeconds, proofSeconds = PROOF_SECONDS, log = console.error } = options;
  const toSpec = (server: Server) => {
    const { orderNumber, rootPassword, userData } = server;
    return specOf(db, server, {
      rootPassword: rootPassword && ROOT_PASSWORD.open(vault, rootPassword, orderNumber),
      userData: userData && USER_DATA.open(vault, userData, orderNumber),
    });
  };
  const step =
    (run: ServerStep, ...statuses: ServerStatus[]) =>
    async (task: LeasedTask): Promise<Outcome> => {
      const server = await READ_SERVER.first(db, [task.subject]);
      if (!server || server.status === 'DELETED') return done();
      // Customers can delete a server at any time, so every step checks that first.
      if (server.status === 'DELETING' && run !== destroy) return hop('destroy');
      // A change that began during another step starts from its beginning.
      if (CHANGING.has(server.status) && !statuses.includes(server.status)) return hop('change');
      if (server.status === 'SUSPENDED' && !statuses.includes('SUSPENDED')) return hop('suspend');
      // A failed order that holds capacity releases it.
      if (server.status === 'FAILED' && server.ipv4 && run !== clean) return hop('clean');
      if (!statuses.includes(server.status)) return done();
      const { kind } = server;
      const common = { db, server, log, pollSeconds, specOf: toSpec };
      const work = { ...common, driver: drivers[kind], proofSeconds: proofSeconds[kind] };
      try {
        return underLock(server, await run(task, work));
      } catch (error) {
        await noteTrouble(work, task, error);
        throw error;
      }
    };
  return {
    lane: SERVER_LANE,
    attemptsMax: ATTEMPTS_MAX,
    isOutage,
    backoffSeconds: (attempt) => pauseSeconds(pollSeconds, attempt),
    steps: {
      claim: step(claim, 'PENDING'),
      create: step(create, 'PROVISIONING'),
      prove: step(prove, 'PROVISIONING'),
      replace: step(replace, 'PROVISIONING'),
      clean: step(clean, 'FAILED'),
      change: step(change, ...CHANGING),
      confirm: step(confirm, ...CHANGING),
      restore: step(restore, ...CHANGING),
      suspend: step(powerOff, 'SUSPENDED'),
      resume: step(powerOn, 'SUSPENDED'),
      destroy: step(destroy, 'DELETING'),
    },
    onExhausted: exhausted,
  };
}

/** Locks the account and the server before the commit of a step, which then locks money, places and tasks. */
const underLock = (server: Server, outcome: Outcome): Outcome => ({
  ...outcome,
  party: partyOf(server),
  commit:
    outcome.commit &&
    (async (tx) => {
      await LOCK_SERVER_ONLY.all(tx, [server.orderNumber]);
      await outcome.commit!(tx);
    }),
});

/** Fails an order, or returns a change to its earlier state. The worker never stops to clean up, delete or suspend. */
async function exhausted({ step, subject, data }: LeasedTask, tx: Transaction): Promise<string> {
  const server = await LOCK_SERVER.first(tx, [subject]);
  if (step === 'destroy' || step === 'clean' || !server) return step;
  if (server.status === 'DELETING') return 'destroy';
  if (CHANGING.has(server.status)) {
    if (step === 'restore') await fallBack(tx, server);
    return 'restore'; // Ends the task if nothing is left to do.
  }
  if (server.status === 'SUSPENDED') return persist(tx, server);
  if (server.status !== 'PENDING' && server.status !== 'PROVISIONING') return step;
  await undeliverable(tx, server, data);
  return 'clean';
}
