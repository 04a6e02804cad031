/**
 * Tells the operator's DNS the names of addresses. It reads the names that servers want and the DNS has not
 * accepted yet, so it misses no change. A removed name is null. Each address is one POST, signed like webhooks. Status 2xx
 * accepts the name; after another status, the name rests until the next tick.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import {
  FIND_ANY_CHANGED,
  FIND_CHANGED_NAMES,
  NOTE_NAMES,
  type ReverseName,
} from '../../../entities/servers/reverse-dns.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Outcome, type Process } from '../../tasks/tasks.ts';
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

/** A walk through the accounts. Another one follows at once if the DNS has accepted a name. */
interface Round {
  /** The last account. */
  after: string;
  wasTold: boolean;
  /** The last error that is not the fault of a name. */
  failure?: string | undefined;
}

export const reverseDnsProcess = (db: Database, hook: ReverseDnsHook): Process => ({
  ...periodic({
    start: async ({ aborted, attempts, data }) => {
      const round = attempts > 1 ? await roundAnywhere(db) : ((data.round as Round | null) ?? NEW_ROUND);
      const names = await FIND_CHANGED_NAMES.all(db, [round.after, ACCOUNTS, NAMES_OF_ACCOUNT, TICK_SECONDS]);
      const last = names.at(-1);
      if (!last) return endOf(round);
      const { told, failed, silent, failure = round.failure } = await tellAll(hook, names, aborted);
      const note = (tx: Transaction) =>
        NOTE_NAMES.all(tx, [told.map(({ ip }) => ip), told.map(({ ptr }) => ptr), failed.map(({ ip }) => ip)]);
      if (failure && !told.length && silent.length === failed.length) {
        await db.transaction(note);
        throw new Error(failure);
      }
      const next: Round = { after: last.accountId, wasTold: round.wasTold || told.length > 0, failure };
      return hop('start', { data: { round: next }, commit: note });
    },
    // The operator sees the error until the next tick.
    report: async ({ attempts, data }) => {
      if (attempts === 1) throw new Error(data.failure as string);
      return hop('start');
    },
  }),
  backoffSeconds: () => TICK_SECONDS,
});

const NEW_ROUND: Round = { after: '', wasTold: false };

/** After silence, the names of one account would be the first ones again, and may be its cause. */
async function roundAnywhere(db: Database): Promise<Round> {
  const any = await FIND_ANY_CHANGED.first(db);
  return any ? { ...NEW_ROUND, after: any.accountId.slice(0, -1) } : NEW_ROUND;
}

function endOf({ wasTold, failure }: Round): Outcome {
  if (failure && !wasTold) return hop('report', { data: { round: null, failure } });
  return hop('start', { afterSeconds: wasTold ? 0 : TICK_SECONDS, data: { round: null } });
}

/** Sends names, until the DNS is away. */
async function tellAll(hook: ReverseDnsHook, names: Changed[], aborted: AbortSignal) {
  const sent = { told: [] as Changed[], failed: [] as Changed[], silent: [] as Changed[] };
  let failure: string | undefined;
  for (const name of names) {
    if (new Set(sent.silent.map(({ accountId }) => accountId)).size === SILENT_ACCOUNTS_MAX) break;
    const fault = await tell(hook, name, aborted);
    (fault ? sent.failed : sent.told).push(name);
    if (fault && !(fault instanceof Answered)) sent.silent.push(name);
    if (fault && !(fault instanceof Refused)) failure = fault.message;
  }
  return { ...sent, failure };
}
type Changed = ReverseName & { accountId: string };

/** The DNS answers, and does not accept this name. The worker still sends the others. */
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
