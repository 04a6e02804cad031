/**
 * Proves the books once a day, as `npm run verify` does. The metrics tell the end of the last proof, and the log its first fault.
 * With many transfers it proves everything once a week, also the chains, and keeps a mark. On other days it reads what came since.
 */
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { proveAudit, proveAuditSince } from '../../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../../entities/history/audit-signature.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { proveBooksSince } from '../../entities/payments/proof/since.ts';
import { findMark, keepMark, type Mark, markOf } from '../../entities/payments/proof/mark.ts';
import type { Vault } from '../../entities/secrets.ts';
import { BOOKS_COMPONENT, WRITE_HEALTH } from '../../entities/transparency/health.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const BOOKS_PROCESS = 'books-proof';
const DAY_SECONDS = 24 * 3600;
/** The first proof comes when a new service has started. */
const FIRST_SECONDS = 600;
/** The transfers from which the worker proves everything only once a week. The proof of fewer takes some seconds. */
const MANY_TRANSFERS = 1_000_000;
/** A proof a week later begins a little earlier in the day. */
const WHOLE_MS = 6.5 * DAY_SECONDS * 1000;

interface Options {
  db: Database;
  vault: Vault;
  /** Default: 1,000,000. */
  manyTransfers?: number;
  log(line: string): void;
}

export const booksProcess = ({ db, vault, manyTransfers = MANY_TRANSFERS, log }: Options): Process => {
  const publicKeys = signingKeys(vault).map(publicKeyOf);
  // Money moves meanwhile, so a proof reads one moment.
  const reading = <Result>(prove: (tx: Transaction) => Promise<Result>) =>
    db.transaction(async (tx) => {
      await tx.query('set transaction isolation level repeatable read, read only');
      return prove(tx);
    });

  const isProvenSince = (mark: Mark): Promise<boolean> =>
    reading(async (tx) => {
      const books = await proveBooksSince(tx, mark);
      return !books.faults.length && !(await proveAuditSince(tx, mark, publicKeys)).faults.length;
    });

  /** Proves everything. With many transfers and no fault it keeps a mark. */
  async function isProven(): Promise<boolean> {
    const { firstFault, mark } = await reading(async (tx) => {
      const books = await proveBooks(tx);
      if (books.firstFault || books.transfers < manyTransfers) return books;
      const { faults, latest } = await proveAudit(tx, { publicKeys });
      const [fault] = faults;
      if (fault) log(`The records are not as the service wrote them. ${fault.detail} Run: npm run verify`);
      return { ...books, mark: fault ? undefined : await markOf(tx, books, latest?.digest ?? null) };
    }).then((proven) => ({ mark: undefined, ...proven }));
    if (mark) await keepMark(db, vault, mark);
    if (!firstFault) return true;
    const { table, row, detail } = firstFault;
    log(`The books do not balance. ${table}, row ${row}: ${detail} Run: npm run verify`);
    return false;
  }

  return periodic({
    start: async () => hop('prove', { afterSeconds: FIRST_SECONDS }),
    prove: async () => {
      const mark = await findMark(db, vault);
      const isFresh = mark && mark.number >= manyTransfers && Date.now() - +mark.provenAt < WHOLE_MS;
      // The whole proof names what the other one only notices.
      const balanced = (isFresh && (await isProvenSince(mark))) || (await isProven());
      const status = balanced ? 'operational' : 'major_outage';
      return hop('prove', {
        afterSeconds: DAY_SECONDS,
        commit: (tx) => WRITE_HEALTH.all(tx, [[BOOKS_COMPONENT], [status]]),
      });
    },
  });
};
