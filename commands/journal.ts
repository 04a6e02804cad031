/** `npm run journal -- --month 2026-10 [--format csv|hledger]`: prints the transfers of a month. It changes nothing. */
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import { type JournalEntry, LIST_JOURNAL } from '../entities/payments/closed-month.ts';
import { csvLine } from '../facades/formats/csv-line.ts';
import { decimalOf, hledgerEntry } from '../provisioning/payments/wallet/journal.ts';

const USAGE = 'Usage: npm run journal -- --month 2026-10 [--format csv|hledger]';
const HEAD = ['id', 'time', 'kind', 'debit', 'credit', 'amount_usd', 'order_number', 'description'];

const FORMATS: Readonly<Record<string, { head: string; render: (entry: JournalEntry) => string }>> = {
  csv: {
    head: csvLine(HEAD),
    render: ({ id, at, kind, debit, credit, micros, orderNumber, description }) =>
      csvLine([id, at.toISOString(), kind, debit, credit, decimalOf(micros), orderNumber, description]),
  },
  hledger: { head: '; The amounts have six decimals.\ncommodity 1000.000000 USD\n\n', render: hledgerEntry },
};

/** @throws Error with the usage */
function given(): { month: string; format: (typeof FORMATS)[string] } {
  const { values } = parseArgs({ options: { month: { type: 'string' }, format: { type: 'string', default: 'csv' } } });
  const format = FORMATS[values.format];
  if (!format || !/^[1-9][0-9]{3}-(0[1-9]|1[0-2])$/.test(values.month ?? '')) throw new Error(USAGE);
  return { month: values.month!, format };
}

async function journal(): Promise<void> {
  const { month, format } = given();
  await inExistingDatabase(readConfig(), async ({ url, ownerUrl }) => {
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    try {
      process.stdout.write(format.head);
      let last = '';
      for (;;) {
        const entries = await LIST_JOURNAL.all(db, [month, last]);
        for (const entry of entries) process.stdout.write(format.render(entry));
        if (!entries.length) return;
        last = entries.at(-1)!.id;
      }
    } finally {
      await db.close();
    }
  });
}

// The reader of a pipe may stop earlier, such as head.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
try {
  await journal();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
