/**
 * `npm run verify`: proves that the books balance, and that the ledger accounts for every payment, top-up and order. It also
 * proves that the audit log is as the service wrote it. Otherwise it names the wrong rows and ends with 1. Like any start, it
 * migrates the tables; it changes nothing else. It may run beside the service.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, readConfig } from './config.ts';
import { Database } from './entities/database/database.ts';
import { runningUrl, startEmbeddedPostgres } from './entities/database/embedded-postgres.ts';
import { proveAudit } from './entities/history/audit-proof.ts';
import { publicKeyOf, signingKey } from './entities/history/audit-signature.ts';
import { usdFromMicros } from './entities/money.ts';
import { proveBooks } from './entities/payments/books.ts';
import { Vault } from './entities/secrets.ts';

async function verify(): Promise<boolean> {
  const config = readConfig();
  const running = config.databaseUrl ?? (await runningUrl(config.dataDir));
  const embedded = running ? undefined : await startEmbeddedPostgres(config.dataDir);
  try {
    const db = await Database.open(running ?? embedded!.url, {
      poolSize: 2,
      ownerUrl: embedded?.ownerUrl ?? config.migrationDatabaseUrl,
    });
    try {
      const areBooksRight = await verifyTheBooks(db);
      return (await verifyTheAudit(db, keyOf(config))) && areBooksRight;
    } finally {
      await db.close();
    }
  } finally {
    await embedded?.stop();
  }
}

async function verifyTheBooks(db: Database): Promise<boolean> {
  const { balanced, transfers, totals, firstFault } = await proveBooks(db);
  for (const { name, micros } of totals) console.log(`${name.padEnd(24)} ${usdFromMicros(micros)} USD`);
  if (firstFault) console.log(`\nWRONG: ${firstFault.table} ${firstFault.row}: ${firstFault.detail}`);
  else console.log(`\nThe books balance: ${transfers} transfers.`);
  return balanced;
}

/** @param publicKey the key of the signatures; undefined without SECRET_KEY */
async function verifyTheAudit(db: Database, publicKey: Buffer | undefined): Promise<boolean> {
  // Retention and the worker may write meanwhile, so the proof reads one moment.
  const proof = await db.transaction(async (tx) => {
    await tx.query('set transaction isolation level repeatable read, read only');
    return proveAudit(tx, publicKey);
  });
  const { entries, signatures, foreignSignatures, latestDigest, faults } = proof;
  for (const { accountId, entryId, detail } of faults)
    console.log(
      `WRONG: audit log${accountId ? ` of ${accountId}` : ''}${entryId ? `, entry ${entryId}` : ''}: ${detail}`,
    );
  if (!faults.length) console.log(`The audit log is as it was written: ${entries} entries, ${signatures} signatures.`);
  if (latestDigest) console.log(`Its latest signature covers the text with the sha256 ${latestDigest}.`);
  if (!publicKey) console.log('SECRET_KEY is not known here, so nothing shows who made the signatures.');
  else if (foreignSignatures) console.log(`Signatures of another SECRET_KEY: ${foreignSignatures}.`);
  return !faults.length;
}

/** Returns the public key of the signatures, if this installation has SECRET_KEY. */
function keyOf({ secretKey, dataDir }: Config): Buffer | undefined {
  const file = join(dataDir, 'secret-key');
  const given = secretKey ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined);
  return given === undefined ? undefined : publicKeyOf(signingKey(new Vault(Buffer.from(given, 'base64'))));
}

try {
  process.exitCode = (await verify()) ? 0 : 1;
} catch (error) {
  console.error(`The service cannot verify its records. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
