/** Proves the books once a day, as `npm run verify` does. The metrics tell the end of the last proof, and the log its first fault. */
import type { Database } from '../../entities/database/database.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { BOOKS_COMPONENT, WRITE_HEALTH } from '../../entities/transparency/health.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const BOOKS_PROCESS = 'books-proof';
const DAY_SECONDS = 24 * 3600;
/** The first proof comes when a new service has started. */
const FIRST_SECONDS = 600;

export const booksProcess = (db: Database, log: (line: string) => void): Process =>
  periodic({
    start: async () => hop('prove', { afterSeconds: FIRST_SECONDS }),
    prove: async () => {
      const { balanced, firstFault } = await db.transaction(async (tx) => {
        // Money moves meanwhile, so the proof reads one moment.
        await tx.query('set transaction isolation level repeatable read, read only');
        return proveBooks(tx);
      });
      if (firstFault) {
        const { table, row, detail } = firstFault;
        log(`The books do not balance. ${table}, row ${row}: ${detail} Run: npm run verify`);
      }
      const status = balanced ? 'operational' : 'major_outage';
      return hop('prove', {
        afterSeconds: DAY_SECONDS,
        commit: (tx) => WRITE_HEALTH.all(tx, [[BOOKS_COMPONENT], [status]]),
      });
    },
  });
