/** The proofs of `npm run verify`, which also end an import. They print what they prove, and what is wrong. */
import type { Database } from '../entities/database/database.ts';
import { findDifferences } from '../entities/database/objects/objects.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { proveAudit } from '../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../entities/history/audit-signature.ts';
import type { KnownOfAudit } from '../entities/history/audit-signed.ts';
import { LEDGER_CHAIN } from '../entities/history/hash-chain.ts';
import { usdFromMicros } from '../entities/money.ts';
import { proveBooks } from '../entities/payments/books.ts';
import type { Vault } from '../entities/secrets.ts';

/**
 * Proves the objects of the database, the books, the ledger and the audit log.
 * @param vault undefined if SECRET_KEY is not known here
 * @param digests of the audit log, which the service published
 * @returns whether nothing is wrong
 */
export function proveRecords(db: Database, vault: Vault | undefined, digests: string[] = []): Promise<boolean> {
  const publicKeys = vault ? signingKeys(vault).map(publicKeyOf) : [];
  return db.transaction(async (tx) => {
    // Retention and the worker may write meanwhile, so the proof reads one moment.
    await tx.query('set transaction isolation level repeatable read, read only');
    // It sums up the rows of all accounts at once, and would write them to the disk meanwhile.
    await tx.query(`set local work_mem = '64MB'`);
    if (!(await proveObjects(tx))) return false;
    const areBooksRight = await proveTheBooks(tx);
    return (await proveTheAudit(tx, { publicKeys, digests })) && areBooksRight;
  });
}

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

async function proveTheBooks(tx: Transaction): Promise<boolean> {
  const { balanced, transfers, totals, faults } = await proveBooks(tx);
  for (const { name, micros } of totals) console.log(`${name.padEnd(24)} ${usdFromMicros(micros)} USD`);
  if (balanced) console.log(`\nThe books balance: ${counted(transfers, 'transfer')}.`);
  for (const { table, detail, rows, count } of faults) {
    console.log(`\nWRONG: ${table}: ${detail} ${counted(count, 'row')}:`);
    for (const row of rows) console.log(`  ${row}`);
    if (count > rows.length) console.log(`  and ${count - rows.length} more`);
  }
  return balanced;
}

async function proveTheAudit(tx: Transaction, known: Required<KnownOfAudit>): Promise<boolean> {
  const proof = await proveAudit(tx, known);
  const { entries, transfers, signatures, firstSignedAt, latest, missingDigests, faults, hasMoreFaults } = proof;
  const isAttributed = !signatures || known.publicKeys.length > 0;
  for (const { accountId, entryId, detail } of faults)
    console.log(
      accountId === LEDGER_CHAIN
        ? `WRONG: ledger${entryId ? `, transfer ${entryId}` : ''}: ${detail}`
        : `WRONG: audit log${accountId ? ` of ${accountId}` : ''}${entryId ? `, entry ${entryId}` : ''}: ${detail}`,
    );
  if (hasMoreFaults) console.log('WRONG: and more. Mend these faults, and prove the records again.');
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
  return isAttributed && !faults.length && !missingDigests.length;
}

const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
