/**
 * `npm run payouts`: the operator's wallet and the books. `export` prints the payouts to sign offline, as JSON. `import <file>`
 * keeps what was sent: lines of a payout id and its transaction, separated by a space or a comma. `settle` asks the chains, and
 * finishes the payouts that no chain can remove. Without a word, it lists the open payouts.
 */
import { readFileSync } from 'node:fs';
import { readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import type { Actor } from '../entities/history/audit.ts';
import { usdFromMicros } from '../entities/money.ts';
import { LIST_BROADCAST, LIST_UNSENT, type Payout } from '../entities/payments/payout.ts';
import { readGateways } from '../provisioning/payments/gateways.ts';
import { formatUnits } from '../provisioning/payments/top-ups/amount.ts';
import { exportedPayouts } from '../provisioning/payments/wallet/export.ts';
import { exportPayouts, importSent, type SentPayout } from '../provisioning/payments/wallet/payouts.ts';
import { finishShown } from '../provisioning/payments/wallet/shown.ts';

const ACTOR: Actor = { type: 'operator', id: null, name: 'npm run payouts', requestId: null };
const USAGE = 'Usage: npm run payouts [-- export | import <file> | settle]';

const lineOf = ({ id, status, network, coin, address, units, decimals, amountMicros, txId }: Payout) =>
  `${id} ${status.padEnd(9)} ${network} ${formatUnits(BigInt(units), decimals)} ${coin} (${usdFromMicros(amountMicros)} USD) to ${address}${txId ? ` by ${txId}` : ''}`;

/** @throws Error that names the wrong line */
const sentIn = (file: string): SentPayout[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => {
      const [, id, txId] = /^(out_\w+)[\s,]+(\S+)$/.exec(line) ?? [];
      if (!id || !txId) throw new Error(`${file} has a line without a payout id and a transaction: ${line}`);
      return { id, txId };
    });

async function payouts([command = 'list', file]: string[]): Promise<boolean> {
  const config = readConfig();
  return inExistingDatabase(config, async ({ url, ownerUrl }) => {
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    try {
      if (command === 'export') console.log(JSON.stringify(exportedPayouts(await exportPayouts(db, ACTOR)), null, 2));
      else if (command === 'import' && file)
        for (const payout of await importSent(db, sentIn(file), ACTOR)) console.log(lineOf(payout));
      else if (command === 'settle') return await settle(db, config.paymentsFile);
      else if (command === 'list') {
        const open = [...(await LIST_UNSENT.all(db)), ...(await LIST_BROADCAST.all(db))];
        console.log(open.map(lineOf).join('\n') || 'No payout is open.');
      } else throw new Error(USAGE);
      return true;
    } finally {
      await db.close();
    }
  });
}

async function settle(db: Database, paymentsFile: string | undefined): Promise<boolean> {
  const drivers = paymentsFile ? readGateways(paymentsFile).payments : [];
  const asked = await finishShown(db, drivers, ACTOR, AbortSignal.timeout(600_000));
  for (const { payout, shown } of asked) console.log(`${shown.padEnd(7)} ${lineOf(payout)}`);
  if (asked.some(({ shown }) => shown === 'UNKNOWN'))
    console.log('\nNo chain tells about UNKNOWN payouts. Look at them yourself, and send the mutation finishPayout.');
  if (!asked.length) console.log('No payout was sent.');
  return !asked.some(({ shown }) => shown === 'WRONG');
}

try {
  process.exitCode = (await payouts(process.argv.slice(2))) ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
