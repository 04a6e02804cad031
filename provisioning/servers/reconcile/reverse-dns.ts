/**
 * Tells the operator's DNS which names addresses are to have. What servers want is compared with what was told last, so
 * nothing is missed, whatever changed it; a name that is not wanted any more is told as null. One POST for each address,
 * signed as webhooks are; any 2xx is taken for done, and all else is tried again in the next round.
 */
import type { Database } from '../../../entities/database/database.ts';
import { newId } from '../../../entities/ids.ts';
import { periodic } from '../../tasks/schedule.ts';
import { hop, type Process } from '../../tasks/tasks.ts';
import { signedHeaders } from '../../webhooks/sign.ts';

export const REVERSE_DNS_PROCESS = 'reverse-dns';
const TICK_SECONDS = 15;
const TIMEOUT_SECONDS = 10;
/** How many one step tells. */
const CHUNK = 50;

/** Where the operator's DNS is told, also at a private address; the secret is one of a webhook (`whsec_…`). */
export interface ReverseDnsHook {
  url: string;
  secret: string;
}
interface Name {
  ip: string;
  /** Null: none. */
  ptr: string | null;
}

export const reverseDnsProcess = (db: Database, hook: ReverseDnsHook): Process =>
  periodic({
    start: async ({ aborted, data }) => {
      const names = await db.query<Name>(CHANGED, [CHUNK, data.after ?? null]);
      const told: Name[] = [];
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
        commit: (tx) => tx.query(KEEP, [told.map(({ ip }) => ip), told.map(({ ptr }) => ptr)]),
      });
    },
  });

/** The DNS takes other names, but not this one: it waits for the next round, and keeps no other from being told. */
class Refused extends Error {}

/** @returns why it was not told */
async function tell({ url, secret }: ReverseDnsHook, { ip, ptr }: Name, aborted: AbortSignal) {
  const body = JSON.stringify({ ip, ptr });
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(TIMEOUT_SECONDS * 1000)]);
  const headers = { 'content-type': 'application/json', ...signedHeaders([secret], { id: newId('dlv'), body }) };
  try {
    const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'error' });
    await answer.body?.cancel();
    if (answer.ok) return undefined;
    const Fault = answer.status >= 400 && answer.status < 500 ? Refused : Error;
    return new Fault(`The operator's DNS answers ${answer.status}.`);
  } catch {
    aborted.throwIfAborted();
    return new Error("The operator's DNS cannot be reached.");
  }
}

const CHANGED = `
  with wanted as (
    select distinct on (1) (item->>'ip')::inet as ip, item->>'ptr' as ptr
    from server, jsonb_array_elements(reverse_dns) item
    where reverse_dns <> '[]' and status <> 'DELETED' order by 1, updated_at desc)
  select host(ip) as ip, wanted.ptr from wanted full join reverse_dns_told told using (ip)
  where wanted.ptr is distinct from told.ptr and ($2::inet is null or ip > $2) order by ip::inet limit $1`;

const KEEP = `
  with done as (select * from unnest($1::inet[], $2::text[]) as given(ip, ptr)),
    forgotten as (delete from reverse_dns_told told using done where told.ip = done.ip and done.ptr is null)
  insert into reverse_dns_told (ip, ptr) select ip, ptr from done where ptr is not null order by ip
  on conflict (ip) do update set ptr = excluded.ptr`;
