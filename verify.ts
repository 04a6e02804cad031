/**
 * `npm run verify`: proves that the books balance, and that the ledger bears out every payment, top-up and order; or names
 * the first row that is wrong, and ends with 1. It changes nothing, and may run beside the service if DATABASE_URL is set.
 */
import { readConfig } from './config.ts';
import { proveBooks } from './entities/books.ts';
import { Database } from './entities/database.ts';
import { startEmbeddedPostgres } from './entities/embedded-postgres.ts';
import { usdFromMicros } from './entities/money.ts';

const config = readConfig();
const embedded = config.databaseUrl ? undefined : await startEmbeddedPostgres(config.dataDir);
const db = await Database.open(config.databaseUrl ?? embedded!.url, { poolSize: 2 });
try {
  const { balanced, transfers, totals, firstFault } = await proveBooks(db);
  for (const { name, micros } of totals) console.log(`${name.padEnd(24)} ${usdFromMicros(micros)} USD`);
  if (firstFault) console.log(`\nWRONG: ${firstFault.table} ${firstFault.row}: ${firstFault.detail}`);
  else console.log(`\nThe books balance: ${transfers} transfers.`);
  process.exitCode = balanced ? 0 : 1;
} finally {
  await db.close();
  await embedded?.stop();
}
