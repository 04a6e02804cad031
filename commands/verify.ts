/**
 * `npm run verify`: proves that the books balance, and that the other tables of money agree with the ledger. It also
 * proves that the ledger and the audit log are as the service wrote them. First it proves that the database has the
 * objects of the service and no others, which could hide rows. With `--digest`, it proves that the log still has what it had
 * when the service published that digest. Otherwise it names what is wrong and ends with 1. Like any start, it migrates the
 * tables; it changes nothing else, and makes no database. It may run beside the service.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Config, readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import { findDifferences } from '../entities/database/objects/objects.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { proveAudit } from '../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../entities/history/audit-signature.ts';
import type { KnownOfAudit } from '../entities/history/audit-signed.ts';
import { LEDGER_CHAIN } from '../entities/history/hash-chain.ts';
import { usdFromMicros } from '../entities/money.ts';
import { proveBooks } from '../entities/payments/books.ts';
import { connectionName } from '../entities/secret-key.ts';
import { Vault } from '../entities/secrets.ts';

async function verify(): Promise<boolean> {
  const digests = givenDigests().flatMap(digestsIn);
  const config = readConfig();
  const vault = vaultOf(config);
  return inExistingDatabase(config, async ({ url, ownerUrl, place }) => {
    // Code in the database could otherwise tell this program by its name from a service, and show it other rows.
    const db = await Database.open(url, { poolSize: 2, ownerUrl, ...(vault && { name: connectionName(vault) }) });
    try {
      console.log(`Database ${place}\n`);
      const publicKeys = vault ? signingKeys(vault).map(publicKeyOf) : [];
      return await db.transaction(async (tx) => {
        // Retention and the worker may write meanwhile, so the proof reads one moment.
        await tx.query('set transaction isolation level repeatable read, read only');
        // It sums up the rows of all accounts at once, and would write them to the disk meanwhile.
        await tx.query(`set local work_mem = '64MB'`);
        if (!(await verifyTheObjects(tx))) return false;
        const areBooksRight = await verifyTheBooks(tx);
        return (await verifyTheAudit(tx, { publicKeys, digests })) && areBooksRight;
      });
    } finally {
      await db.close();
    }
  });
}

/** @throws Error with the usage */
function givenDigests(): string[] {
  try {
    return parseArgs({ options: { digest: { type: 'string', multiple: true, default: [] } } }).values.digest;
  } catch {
    throw new Error('Usage: npm run verify [-- --digest <a digest, or a file with an answer of the service>]');
  }
}

const DIFFERENCES_MAX = 50;

async function verifyTheObjects(tx: Transaction): Promise<boolean> {
  const differences = await findDifferences(tx);
  for (const { name, definition, isKnown } of differences.slice(0, DIFFERENCES_MAX))
    if (definition === undefined) console.log(`WRONG: An object of the service is missing: ${name}.`);
    else if (isKnown) console.log(`WRONG: An object is not as the service made it: ${name}. It is now: ${definition}`);
    else console.log(`WRONG: The database has a foreign object, which may hide rows: ${name}. Remove it.`);
  const rest = differences.length - DIFFERENCES_MAX;
  if (rest > 0) console.log(`WRONG: and ${rest} more. Mend these objects, and prove the records again.`);
  return !differences.length;
}

async function verifyTheBooks(tx: Transaction): Promise<boolean> {
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

async function verifyTheAudit(tx: Transaction, known: Required<KnownOfAudit>): Promise<boolean> {
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

/** Returns the vault of the service; undefined if this installation lacks SECRET_KEY. */
function vaultOf({ secretKey, secretKeyPrevious, dataDir }: Config): Vault | undefined {
  const file = join(dataDir, 'secret-key');
  const given = secretKey ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined);
  return given === undefined ? undefined : new Vault(bytesOf(given), ...secretKeyPrevious.map(bytesOf));
}
const bytesOf = (key: string) => Buffer.from(key, 'base64');

/** Returns a digest, or all digests in a file with answers of the service. @throws Error if there is none */
function digestsIn(given: string): string[] {
  const text = existsSync(given) ? readFileSync(given, 'utf8') : given;
  const digests = /^[0-9a-f]{64}$/.test(text.trim())
    ? [text.trim()]
    : [...text.matchAll(/"sha256": ?"([0-9a-f]{64})"/g)].map(([, digest]) => digest!);
  if (!digests.length)
    throw new Error('--digest is a digest of 64 hexadecimal digits, or a file with an answer of the service.');
  return digests;
}

try {
  process.exitCode = (await verify()) ? 0 : 1;
} catch (error) {
  console.error(`The service cannot verify its records. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
