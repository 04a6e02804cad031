/** Removes credentials that have long been over: nothing is kept of them but what the audit log says. */
import type { Database } from '../../entities/database/database.ts';
import { idFloor } from '../../entities/ids.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const CREDENTIAL_RETENTION_PROCESS = 'credential-retention';
const TICK_SECONDS = 3600;
const CHUNK = 5_000;
/** How long a session or a key that is over can still be looked up. */
const KEPT_DAYS = 30;
const DAY_MS = 86_400_000;

/** A spent refresh token is known as long as its family can live: who shows it again ends the family. */
const SESSION_IS_OVER = (before: string) => `
  least(revoked_at, greatest(expires_at, refresh_expires_at)) < ${before} and (rotated_at is null or family_expires_at < now())`;

export const credentialRetentionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const kept = `now() - interval '${KEPT_DAYS} days'`;
      // Ids sort by time, and what is younger than that cannot have been over for so long.
      const before = (prefix: 'tok' | 'key') => idFloor(prefix, Date.now() - KEPT_DAYS * DAY_MS);
      const removed = [
        await db.query(deletion('session', SESSION_IS_OVER(kept)), [before('tok'), CHUNK]),
        await db.query(deletion('api_key', `least(revoked_at, expires_at) < ${kept}`), [before('key'), CHUNK]),
        await db.query('delete from pending_login where expires_at < now() returning 1'),
        await db.query('delete from totp where enabled_at is null and setup_expires_at < now() returning 1'),
      ];
      return hop('start', { afterSeconds: removed.some(({ length }) => length === CHUNK) ? 0 : TICK_SECONDS });
    },
  });

const deletion = (table: string, condition: string) => `
  delete from ${table} where id in (select id from ${table} where id < $1 and ${condition} order by id limit $2) returning 1`;
