/**
 * Tells the operator's DNS the names of addresses. It reads the names that servers want and the DNS has not
 * accepted yet, so it misses no change. A removed name is null. Each address is one POST, signed like webhooks. Status 2xx
 * accepts the name; after another status, the name rests until the next tick.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import { FIND_CHANGED_NAMES, NOTE_NAMES, type ReverseName } from '../../../entities/servers/reverse-dns.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { signedHeaders } from '../../webhooks/sign.ts';

export const REVERSE_DNS_PROCESS = 'reverse-dns';
const TICK_SECONDS = 15;
const TIMEOUT_SECONDS = 10;
/** The names of one step, and those of an account. So no account waits for many names of another. */
const [NAMES, NAMES_OF_ACCOUNT] = [50, 2];
/** The DNS is away when it is silent about the names of so many accounts. */
const SILENT_ACCOUNTS_MAX = 5;

/** The hook of the operator's DNS, which may be at a private address. The secret has the form of a webhook's (`whsec_…`). */
export interface ReverseDnsHook {
  url: string;
  secret: string;
}

export const reverseDnsProcess = (db: Database, hook: ReverseDnsHook): Process => ({
  ...periodic({
    start: async ({ aborted }) => {
      const names = await FIND_CHANGED_NAMES.all(db, [NAMES, NAMES_OF_ACCOUNT, TICK_SECONDS]);
      if (!names.length) return hop('start', { afterSeconds: TICK_SECONDS });
      const { told, failed, failure } = await tellAll(hook, names, aborted);
      const note = (tx: Transaction) =>
        NOTE_NAMES.all(tx, [told.map(({ ip }) => ip), told.map(({ ptr }) => ptr), failed.map(({ ip }) => ip)]);
      if (!failure || told.length) return hop('start', { commit: note });
      await db.transaction(note);
      throw new Error(failure);
    },
  }),
  backoffSeconds: () => TICK_SECONDS,
});

/** Sends names, until the DNS is away. */
async function tellAll(hook: ReverseDnsHook, names: Changed[], aborted: AbortSignal) {
  const [told, failed]: [Changed[], Changed[]] = [[], []];
  const silent = new Set<string>();
  let failure: string | undefined;
  for (const name of names) {
    if (silent.size === SILENT_ACCOUNTS_MAX) break;
    if (silent.has(name.accountId)) continue;
    const fault = await tell(hook, name, aborted);
    (fault ? failed : told).push(name);
    if (fault && !(fault instanceof Answered)) silent.add(name.accountId);
    if (fault && !(fault instanceof Refused)) failure = fault.message;
  }
  return { told, failed, failure };
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
