/** Deletes credentials that ended long ago. The audit log keeps their history. */
import {
  DELETE_ENDED_API_KEYS,
  DELETE_ENDED_CLIENTS,
  DELETE_ENDED_SESSIONS,
  ENDED_CREDENTIAL_DAYS,
} from '../../entities/accounts/credential.ts';
import { DELETE_UNCONFIRMED_SEEDS } from '../../entities/accounts/totp.ts';
import type { Database } from '../../entities/database/database.ts';
import { idFloor } from '../../entities/ids.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const CREDENTIAL_RETENTION_PROCESS = 'credential-retention';
const TICK_SECONDS = 3600;
const CHUNK = 5_000;
const DAY_MS = 86_400_000;

export const credentialRetentionProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      // Ids sort by time, and a younger credential cannot have ended so long ago.
      const before = (prefix: 'tok' | 'key' | 'cl') => idFloor(prefix, Date.now() - ENDED_CREDENTIAL_DAYS * DAY_MS);
      const deleted = [
        await DELETE_ENDED_SESSIONS.all(db, [before('tok'), CHUNK]),
        await DELETE_ENDED_API_KEYS.all(db, [before('key'), CHUNK]),
        await DELETE_ENDED_CLIENTS.all(db, [before('cl'), CHUNK]),
      ];
      await DELETE_UNCONFIRMED_SEEDS.all(db);
      return hop('start', { afterSeconds: deleted.some(({ length }) => length === CHUNK) ? 0 : TICK_SECONDS });
    },
  });
