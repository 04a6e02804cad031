/**
 * Tells the operator's DNS the names of addresses. It reads the names that servers want and the DNS has not
 * accepted yet, so it misses no change. A removed name is null. Each address is one POST, signed like webhooks. Status 2xx
 * accepts the name; after another status the worker tries again in the next round.
 */
import type { Database } from '../../../entities/database/database.ts';
import { newId } from '../../../entities/ids.ts';
import { FIND_CHANGED_NAMES, NOTE_NAMES, type ReverseName } from '../../../entities/servers/reverse-dns.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { signedHeaders } from '../../webhooks/sign.ts';

export const REVERSE_DNS_PROCESS = 'reverse-dns';
const TICK_SECONDS = 15;
const TIMEOUT_SECONDS = 10;
/** Names of one step. */
const CHUNK = 50;

/** The hook of the operator's DNS, which may be at a private address. The secret has the form of a webhook's (`whsec_…`). */
export interface ReverseDnsHook {
  url: string;
  secret: string;
}

export const reverseDnsProcess = (db: Database, hook: ReverseDnsHook): Process =>
  periodic({
    start: async ({ aborted, data }) => {
      const names = await FIND_CHANGED_NAMES.all(db, [CHUNK, data.after ?? null]);
      const told: ReverseName[] = [];
      let failure: Error | undefined;
      for (const name of names) {
        failure = await tell(hook, name, aborted);
        if (failure && !(failure instanceof Refused)) break;
        if (!failure) told.push(name);
      }
      if (failure && !(failure instanceof Refused) && !told.length) throw failure;
      const isWhole = names.length < CHUNK;
      return hop('start', {
        afterSeconds: isWhole ? TICK_SECONDS : 0,
        data: { after: isWhole ? null : names.at(-1)!.ip },
        commit: (tx) => NOTE_NAMES.all(tx, [told.map(({ ip }) => ip), told.map(({ ptr }) => ptr)]),
      });
    },
  });

/** The DNS refuses this name, which waits for the next round. The worker still sends the others. */
class Refused extends Error {}

/** Sends one name. @returns the error, or undefined if the DNS has accepted it */
async function tell({ url, secret }: ReverseDnsHook, { ip, ptr }: ReverseName, aborted: AbortSignal) {
  const body = JSON.stringify({ ip, ptr });
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(TIMEOUT_SECONDS * 1000)]);
  const headers = { 'content-type': 'application/json', ...signedHeaders([secret], { id: newId('dlv'), body }) };
  try {
    const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'error' });
    await answer.body?.cancel();
    if (answer.ok) return undefined;
    const Fault = answer.status >= 400 && answer.status < 500 ? Refused : Error;
    return new Fault(`The operator's DNS answered ${answer.status}.`);
  } catch {
    aborted.throwIfAborted();
    return new Error("The operator's DNS cannot be reached.");
  }
}
