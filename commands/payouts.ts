/**
 * `npm run payouts`: the operator's wallet and the books. `export` prints the new payouts to sign offline, as JSON.
 * `export --again` prints those that it printed before. `import <file>` keeps what was sent: lines of a payout id and its
 * transaction, separated by a space or a comma. `import --replace <file>` also replaces transactions that never pay. `settle` asks
 * the chains, and finishes the payouts that no chain can remove. Without a word, it lists the open payouts.
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
import { importSent, type SentPayout } from '../provisioning/payments/wallet/import.ts';
import { exportPayouts } from '../provisioning/payments/wallet/payouts.ts';
import { askReplaced, finishShown, lineOfReplaced } from '../provisioning/payments/wallet/shown.ts';

const ACTOR: Actor = { type: 'operator', id: null, name: 'npm run payouts', requestId: null };
const USAGE = 'Usage: npm run payouts [-- export [--again] | import [--replace] <file> | settle]';

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

/** Prints the list to sign. Everything else goes to the standard error, so that the list stays JSON. */
async function exportList(db: Database, isAgain: boolean): Promise<void> {
  const payouts = await exportPayouts(db, ACTOR, isAgain);
  console.log(JSON.stringify(exportedPayouts(payouts), null, 2));
  if (isAgain) {
    for (const { id, exportedAt } of payouts)
      console.error(`${id} was first exported at ${exportedAt?.toISOString()}.`);
    console.error('WARNING: If you sign both lists, you pay twice. Be sure that you never sent the first one.');
    return;
  }
  const ids = new Set(payouts.map(({ id }) => id));
  const others = (await LIST_UNSENT.all(db)).filter(({ id, status }) => status === 'EXPORTED' && !ids.has(id));
  if (others.length)
    console.error(`The list leaves out ${others.length} payouts of earlier lists. If one is lost, run export --again.`);
}

async function payouts([command = 'list', ...given]: string[]): Promise<number> {
  const config = readConfig();
  const [first, file = first] = given;
  return inExistingDatabase(config, async ({ url, ownerUrl }) => {
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    try {
      if (command === 'export' && (!first || first === '--again')) await exportList(db, first === '--again');
      else if (command === 'import' && file && (first === '--replace') === given.length > 1) {
        const drivers = config.paymentsFile ? readGateways(config.paymentsFile).payments : [];
        const replacing = first === '--replace' ? { drivers, signal: AbortSignal.timeout(600_000) } : undefined;
        const kept = await importSent(db, sentIn(file), ACTOR, replacing);
        for (const payout of kept) console.log(lineOf(payout));
        const replaced = replacing ? await askReplaced(db, drivers, replacing.signal) : [];
        for (const one of replaced) if (kept.some(({ id }) => id === one.payout.id)) console.log(lineOfReplaced(one));
      } else if (command === 'settle') return await settle(db, config.paymentsFile);
      else if (command === 'list') {
        const open = [...(await LIST_UNSENT.all(db)), ...(await LIST_BROADCAST.all(db))];
        console.log(open.map(lineOf).join('\n') || 'No payout is open.');
      } else throw new Error(USAGE);
      return 0;
    } finally {
      await db.close();
    }
  });
}

/** @returns the exit code */
async function settle(db: Database, paymentsFile: string | undefined): Promise<number> {
  const drivers = paymentsFile ? readGateways(paymentsFile).payments : [];
  const signal = AbortSignal.timeout(600_000);
  const asked = await finishShown(db, drivers, ACTOR, signal);
  for (const { payout, shown, fault } of asked)
    console.log(`${shown.padEnd(7)} ${lineOf(payout)}${fault ? `. ${fault}` : ''}`);
  const replaced = await askReplaced(db, drivers, signal);
  for (const one of replaced) console.log(lineOfReplaced(one));
  if (asked.some(({ shown }) => shown === 'UNKNOWN'))
    console.log('\nNo chain tells about UNKNOWN payouts. Look at them yourself, and send the mutation finishPayout.');
  if (asked.some(({ shown }) => shown === 'WRONG'))
    console.log(
      '\nThe chain shows other coins than those of WRONG payouts. It does not show coins that a contract sends. Look at them yourself before you replace them. If one is paid, send the mutation finishPayout.',
    );
  if (!asked.length) console.log('No payout was sent.');
  const states = new Set<string>([...asked.map(({ shown }) => shown), ...replaced.map((one) => one.replaced)]);
  if (['WRONG', 'TWICE', 'ANNOUNCED'].some((state) => states.has(state))) return 1;
  return states.has('SILENT') ? 2 : 0;
}

try {
  process.exitCode = await payouts(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
