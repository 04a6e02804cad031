/**
 * Tells the operator's DNS the names of addresses. It reads the names that servers want and the DNS has not
 * accepted yet, so it misses no change. A removed name is null. Each address is one POST, signed like webhooks. Status 2xx
 * accepts the name; after another status the worker tries again in the next round.
 */
import type { Database } from '../../../entities/database/database.ts';
import { newId } from '../../../entities/ids.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import {
  FIND_ANY_CHANGED,
  FIND_CHANGED_NAMES,
  NOTE_NAMES,
  type ReverseName,
} from '../../../entities/servers/reverse-dns.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { signedHeaders } from '../../webhooks/sign.ts';

export const REVERSE_DNS_PROCESS = 'reverse-dns';
const TICK_SECONDS = 15;
const TIMEOUT_SECONDS = 10;
/** The accounts of one step, and the names of each. So no account waits for many names of another. */
const [ACCOUNTS, NAMES_OF_ACCOUNT] = [25, 2];
/** The DNS is away when it is silent about the names of so many accounts. */
const SILENT_ACCOUNTS_MAX = 5;

/** The hook of the operator's DNS, which may be at a private address. The secret has the form of a webhook's (`whsec_…`). */
export interface ReverseDnsHook {
  url: string;
  secret: string;
}

/** A round goes through the accounts again and again, as long as the DNS accepts a name. */
interface Round {
  /** The last account. */
  after: string;
  /** Whether the DNS has accepted a name since the first account. */
  wasTold: boolean;
  began: Date | string;
}

export const reverseDnsProcess = (db: Database, hook: ReverseDnsHook): Process =>
  periodic({
    start: async ({ aborted, attempts, data, now }) => {
      // After a failure, the names of one account would be the first ones again, and may be its cause.
      const any = attempts > 1 ? await FIND_ANY_CHANGED.first(db) : undefined;
      const first = any?.accountId.slice(0, -1) ?? '';
      const round = (data.round as Round | null | undefined) ?? { after: first, wasTold: false, began: now() };
      const names = await FIND_CHANGED_NAMES.all(db, [round.after, ACCOUNTS, NAMES_OF_ACCOUNT, round.began]);
      const { told, failed, silent, failure } = await tellAll(hook, names, aborted);
      const note = (tx: Transaction) =>
        NOTE_NAMES.all(tx, [told.map(({ ip }) => ip), told.map(({ ptr }) => ptr), failed.map(({ ip }) => ip)]);
      // Of many accounts, other names may be the reason why the DNS fails for these.
      const isWhole = round.after === '' && new Set(names.map(({ accountId }) => accountId)).size < ACCOUNTS;
      if (failure && !told.length && (isWhole || silent.length === failed.length)) {
        await db.transaction(note);
        throw failure;
      }
      const last = names.at(-1)?.accountId;
      const isOver = last === undefined && !round.wasTold;
      const wasTold = last !== undefined && (round.wasTold || told.length > 0);
      return hop('start', {
        afterSeconds: isOver ? TICK_SECONDS : 0,
        data: { round: isOver ? null : { ...round, after: last ?? '', wasTold } },
        commit: note,
      });
    },
  });

/** Sends names, until the DNS is away. */
async function tellAll(hook: ReverseDnsHook, names: Changed[], aborted: AbortSignal) {
  const sent = { told: [] as Changed[], failed: [] as Changed[], silent: [] as Changed[] };
  let failure: Error | undefined;
  for (const name of names) {
    if (new Set(sent.silent.map(({ accountId }) => accountId)).size === SILENT_ACCOUNTS_MAX) break;
    const fault = await tell(hook, name, aborted);
    (fault ? sent.failed : sent.told).push(name);
    if (fault && !(fault instanceof Answered)) sent.silent.push(name);
    if (fault && !(fault instanceof Refused)) failure = fault;
  }
  return { ...sent, failure };
}
type Changed = ReverseName & { accountId: string };

/** The DNS answers, and does not accept this name, which waits for the next round. The worker still sends the others. */
class Answered extends Error {}
/** The name is at fault, and the DNS works. */
class Refused extends Answered {}

/** Sends one name. @returns the error, or undefined if the DNS has accepted it */
async function tell({ url, secret }: ReverseDnsHook, { ip, ptr }: ReverseName, aborted: AbortSignal) {
  const body = JSON.stringify({ ip, ptr });
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(TIMEOUT_SECONDS * 1000)]);
  const headers = { 'content-type': 'application/json', ...signedHeaders([secret], { id: newId('dlv'), body }) };
  try {
    const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'error' });
    await answer.body?.cancel();
    if (answer.ok) return undefined;
    const Fault = answer.status >= 400 && answer.status < 500 ? Refused : Answered;
    return new Fault(`The operator's DNS answered ${answer.status}.`);
  } catch {
    aborted.throwIfAborted();
    return new Error("The operator's DNS cannot be reached.");
  }
}
