/**
 * `npm run verify`: proves that the books balance, and that the ledger bears out every payment, top-up and order; or names
 * the first row that is wrong, and ends with 1. As any start does, it brings the tables up to date; it changes nothing else.
 * Beside a running service it needs DATABASE_URL: an embedded database is used by one process at a time.
 */
import { readConfig } from './config.ts';
import { Database } from './entities/database/database.ts';
import { startEmbeddedPostgres } from './entities/database/embedded-postgres.ts';
import { usdFromMicros } from './entities/money.ts';
import { proveBooks } from './entities/payments/books.ts';

async function verify(): Promise<boolean> {
  const config = readConfig();
  const embedded = config.databaseUrl ? undefined : await startEmbeddedPostgres(config.dataDir);
  try {
    const db = await Database.open(config.databaseUrl ?? embedded!.url, { poolSize: 2 });
    const { balanced, transfers, totals, firstFault } = await proveBooks(db).finally(() => db.close());
    for (const { name, micros } of totals) console.log(`${name.padEnd(24)} ${usdFromMicros(micros)} USD`);
    if (firstFault) console.log(`\nWRONG: ${firstFault.table} ${firstFault.row}: ${firstFault.detail}`);
    else console.log(`\nThe books balance: ${transfers} transfers.`);
    return balanced;
  } finally {
    await embedded?.stop();
  }
}

try {
  process.exitCode = (await verify()) ? 0 : 1;
} catch (error) {
  console.error(`The books cannot be verified. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
