/** Deletes the uses of addresses that ended long ago, cases that closed long ago, and old events. */
import { DELETE_OLD_CASES } from '../../entities/accounts/abuse-case.ts';
import type { Database } from '../../entities/database/database.ts';
import { DELETE_OLD_EVENTS, EVENT_DAYS } from '../../entities/history/event.ts';
import { idFloor } from '../../entities/ids.ts';
import { DELETE_OLD_ADDRESS_USES } from '../../entities/servers/ip-address.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const HISTORY_RETENTION_PROCESS = 'history-retention';
const TICK_SECONDS = 3600;
const CHUNK = 5_000;
const DAY_MS = 86_400_000;

export const historyRetentionProcess = (db: Database): Process =>
  periodic({
    start: async ({ data: { after = '' } }) => {
      const deleted = [await DELETE_OLD_ADDRESS_USES.all(db, [CHUNK]), await DELETE_OLD_CASES.all(db, [CHUNK])];
      // A pass goes on after the last one, so it does not meet again the events that stay.
      const before = idFloor('evt', Date.now() - EVENT_DAYS * DAY_MS);
      const events = await DELETE_OLD_EVENTS.first(db, [after, before, CHUNK]);
      const isMore = events!.last !== null || deleted.some(({ length }) => length === CHUNK);
      return hop('start', { afterSeconds: isMore ? 0 : TICK_SECONDS, data: { after: events!.last ?? after } });
    },
  });
