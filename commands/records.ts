/** The proofs of `npm run verify`, which also end an import. They print what they prove, and what is wrong. */
import type { Database } from '../entities/database/database.ts';
import { findDifferences } from '../entities/database/objects/objects.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { type AuditProof, proveAudit, proveAuditSince } from '../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../entities/history/audit-signature.ts';
import type { KnownOfAudit } from '../entities/history/audit-signed.ts';
import { LEDGER_CHAIN } from '../entities/history/hash-chain.ts';
import { usdFromMicros } from '../entities/money.ts';
import { type Books, type Fault, proveBooks } from '../entities/payments/books.ts';
import { findMark, type Mark, markOf } from '../entities/payments/proof/mark.ts';
import { proveBooksSince } from '../entities/payments/proof/since.ts';
import type { Vault } from '../entities/secrets.ts';

/**
 * Proves the objects of the database, the books, the ledger and the audit log. It changes nothing.
 * @param vault undefined if SECRET_KEY is not known here
 * @param digests of the audit log, which the service published
 * @returns the mark of the proof, if nothing is wrong
 */
export function proveRecords(
  db: Database,
  vault: Vault | undefined,
  digests: string[] = [],
): Promise<Mark | undefined> {
  const publicKeys = vault ? signingKeys(vault).map(publicKeyOf) : [];
  return inProof(db, async (tx) => {
    const books = await proveTheBooks(tx);
    const audit = await proveTheAudit(tx, { publicKeys, digests });
    return books && audit && markOf(tx, books, audit.latest?.digest ?? null);
  });
}

/**
 * Proves what came since the last whole proof.
 * @returns whether nothing is wrong
 * @throws Error if there is no mark of a whole proof
 */
export async function proveNewRecords(db: Database, vault: Vault): Promise<boolean> {
  const mark = await findMark(db, vault);
  if (!mark) throw new Error('No whole proof has kept a mark yet. Run: npm run verify');
  console.log(`The last whole proof was at ${mark.provenAt.toISOString()}. This one reads only what came since.`);
  const proven = await inProof(db, async (tx) => {
    const { transfers, faults } = await proveBooksSince(tx, mark);
    showBookFaults(faults);
    if (!faults.length)
      console.log(`The balances are those of that proof, and of ${counted(transfers, 'transfer')} since.`);
    const audit = await proveAuditSince(tx, mark, signingKeys(vault).map(publicKeyOf));
    showAuditFaults(audit);
    if (audit.faults.length) return undefined;
    console.log(
      `The new records are as they were written: ${counted(audit.entries, 'entry', 'entries')} of the audit log, ${counted(audit.transfers, 'transfer')}.`,
    );
    return faults.length ? undefined : audit;
  });
  if (!proven) console.log('\nRun npm run verify without --since-last-proof: it reads everything, and names more.');
  return Boolean(proven);
}

/** Reads one moment: retention and the worker may write meanwhile. First it proves the objects. */
const inProof = <Result>(db: Database, prove: (tx: Transaction) => Promise<Result | undefined>) =>
  db.transaction(async (tx) => {
    await tx.query('set transaction isolation level repeatable read, read only');
    // It sums up the rows of all accounts at once, and would write them to the disk meanwhile.
    await tx.query(`set local work_mem = '64MB'`);
    return (await proveObjects(tx)) ? prove(tx) : undefined;
  });

const DIFFERENCES_MAX = 50;

async function proveObjects(tx: Transaction): Promise<boolean> {
  const differences = await findDifferences(tx);
  for (const { name, definition, isKnown } of differences.slice(0, DIFFERENCES_MAX))
    if (definition === undefined) console.log(`WRONG: An object of the service is missing: ${name}.`);
    else if (isKnown) console.log(`WRONG: An object is not as the service made it: ${name}. It is now: ${definition}`);
    else console.log(`WRONG: The database has a foreign object, which may hide rows: ${name}. Remove it.`);
  const rest = differences.length - DIFFERENCES_MAX;
  if (rest > 0) console.log(`WRONG: and ${rest} more. Mend these objects, and prove the records again.`);
  return !differences.length;
}

/** @returns the books, if nothing is wrong */
async function proveTheBooks(tx: Transaction): Promise<Books | undefined> {
  const books = await proveBooks(tx);
  for (const { name, micros } of books.totals) console.log(`${name.padEnd(24)} ${usdFromMicros(micros)} USD`);
  if (books.balanced) console.log(`\nThe books balance: ${counted(books.transfers, 'transfer')}.`);
  showBookFaults(books.faults);
  return books.balanced ? books : undefined;
}

function showBookFaults(faults: Fault[]): void {
  for (const { table, detail, rows, count } of faults) {
    console.log(`\nWRONG: ${table}: ${detail}${count ? ` ${counted(count, 'row')}:` : ''}`);
    for (const row of rows) console.log(`  ${row}`);
    if (count > rows.length) console.log(`  and ${count - rows.length} more`);
  }
}

function showAuditFaults({ faults, hasMoreFaults }: AuditProof): void {
  for (const { accountId, entryId, detail } of faults)
    console.log(
      accountId === LEDGER_CHAIN
        ? `WRONG: ledger${entryId ? `, transfer ${entryId}` : ''}: ${detail}`
        : `WRONG: audit log${accountId ? ` of ${accountId}` : ''}${entryId ? `, entry ${entryId}` : ''}: ${detail}`,
    );
  if (hasMoreFaults) console.log('WRONG: and more. Mend these faults, and prove the records again.');
}

/** @returns the proof, if nothing is wrong */
async function proveTheAudit(
  tx: Transaction,
  known: Required<Omit<KnownOfAudit, 'since'>>,
): Promise<AuditProof | undefined> {
  const proof = await proveAudit(tx, known);
  const { entries, transfers, signatures, firstSignedAt, latest, missingDigests, faults } = proof;
  const isAttributed = !signatures || known.publicKeys.length > 0;
  showAuditFaults(proof);
  if (!faults.length && isAttributed)
    console.log(
      `The audit log is as it was written: ${counted(entries, 'entry', 'entries')}, ${counted(signatures, 'signature')}. So is the ledger: ${counted(transfers, 'transfer')}.`,
    );
  if (latest) {
    const [from, until] = [firstSignedAt!, latest.signedAt].map((time) => time.toISOString());
    console.log(`Its latest signature covers the text with the sha256 ${latest.digest}.`);
    console.log(`The signatures are from ${from} to ${until}. They show no deletion of later entries.`);
  }
  for (const digest of missingDigests)
    console.log(
      `WRONG: audit log: no signature has the digest ${digest}. If it is younger than 97 days, somebody wrote the log anew.`,
    );
  for (const digest of known.digests)
    if (!missingDigests.includes(digest)) console.log(`The log has what it had at the digest ${digest}.`);
  if (!isAttributed) console.log('WRONG: SECRET_KEY is not known here, so nothing shows who made the signatures.');
  return isAttributed && !faults.length && !missingDigests.length ? proof : undefined;
}

const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
