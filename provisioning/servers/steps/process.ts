/** The process of a server: one task for its whole life, so that nothing is done to a machine by two at once. */
import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { CHANGING, lockServerSql, Server, type ServerStatus } from '../../../entities/servers/server.ts';
import { done, hop, type LeasedTask, type Outcome, type Process } from '../../tasks/tasks.ts';
import type { HardwareDriver } from '../drivers/driver.ts';
import { specOf } from '../placement/spec.ts';
import { change, confirm, fallBack, restore } from './change.ts';
import { claim, clean, create, prove } from './create.ts';
import { destroy } from './delete.ts';
import { fail, UNDELIVERABLE } from './outcome.ts';
import { remake, replace, restart } from './recovery.ts';
import { persist, powerOn } from './resume.ts';
import { findServer, type ServerStep } from './step.ts';
import { powerOff } from './suspend.ts';
import { ATTEMPTS_MAX, SERVER_LANE } from './task.ts';

interface Options {
  db: Database;
  vault: Vault;
  drivers: Record<Server['kind'], HardwareDriver>;
  pollSeconds: number;
  /** Default: five minutes, and an hour for dedicated servers. */
  proofSeconds?: Record<Server['kind'], number> | undefined;
}

const PROOF_SECONDS: Record<Server['kind'], number> = { VPS: 300, DEDICATED: 3600 };

/** What the root password of a server is sealed for. */
export const passwordContext = (orderNumber: string): string => `server.root_password:${orderNumber}`;

export function serverProcess({ db, vault, drivers, pollSeconds, proofSeconds = PROOF_SECONDS }: Options): Process {
  const toSpec = (server: Server) => {
    const { orderNumber, rootPassword } = server;
    return specOf(db, server, rootPassword && vault.open(rootPassword, passwordContext(orderNumber)));
  };
  const step =
    (run: ServerStep, ...statuses: ServerStatus[]) =>
    async (task: LeasedTask): Promise<Outcome> => {
      const server = await findServer(db, task.subject);
      if (!server || server.status === 'DELETED') return done();
      // Deletion is always taken, so every step looks for it first.
      if (server.status === 'DELETING' && run !== destroy) return hop('destroy');
      // A change that was asked for while the task was at something else is carried out from its beginning.
      if (CHANGING.has(server.status) && !statuses.includes(server.status)) return hop('change');
      if (server.status === 'SUSPENDED' && !statuses.includes('SUSPENDED')) return hop('suspend');
      // An order that failed while it held something gives that back.
      if (server.status === 'FAILED' && server.ipv4 && run !== clean) return hop('clean');
      if (!statuses.includes(server.status)) return done();
      const { kind } = server;
      const work = { db, server, driver: drivers[kind], pollSeconds, proofSeconds: proofSeconds[kind], specOf: toSpec };
      return underLock(server, await run(task, work));
    };
  return {
    lane: SERVER_LANE,
    attemptsMax: ATTEMPTS_MAX,
    backoffSeconds: (attempt) => Math.min(300, 10 * pollSeconds * 2 ** attempt),
    steps: {
      claim: step(claim, 'PENDING'),
      create: step(create, 'PROVISIONING'),
      prove: step(prove, 'PROVISIONING'),
      restart: step(restart, 'PROVISIONING'),
      remake: step(remake, 'PROVISIONING'),
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

const LOCK = lockServerSql('1');

/** What a step commits holds the account and the server first: money, places and tasks come after them. */
const underLock = ({ orderNumber }: Server, outcome: Outcome): Outcome => ({
  ...outcome,
  commit:
    outcome.commit &&
    (async (tx) => {
      await tx.query(LOCK, [orderNumber], 'lock server');
      await outcome.commit!(tx);
    }),
});

/** An order that cannot be fulfilled fails, and a change falls back; cleaning up, deleting and
 * suspending are never given up. */
async function exhausted({ step, subject }: LeasedTask, tx: Transaction): Promise<string> {
  const [server] = await tx.query<Server>(lockServerSql(columnsOf(Server)), [subject]);
  if (step === 'destroy' || step === 'clean' || !server) return step;
  if (server.status === 'DELETING') return 'destroy';
  if (CHANGING.has(server.status)) {
    if (step === 'restore') await fallBack(tx, server);
    return 'restore'; // which ends the task, if nothing is left to be done
  }
  if (server.status === 'SUSPENDED') return persist(tx, server);
  if (server.status !== 'PENDING' && server.status !== 'PROVISIONING') return step;
  await fail(tx, server, 'provisioning_failed', UNDELIVERABLE);
  return 'clean';
}
