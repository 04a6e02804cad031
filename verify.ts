/**
 * `npm run verify`: proves that the books balance, and that the ledger accounts for every payment, top-up and order.
 * Otherwise it names the first wrong row and ends with 1. Like any start, it migrates the tables; it changes nothing
 * else. It needs DATABASE_URL beside a running service: only one process at a time uses an embedded database.
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
