/**
 * `npm run reconcile`: compares the coins of each gateway in the books with those on its chain, and names each difference. It ends
 * with 1 if a chain has fewer coins than pending payments and payouts explain. It also does if a chain has two transactions of a
 * payout. Otherwise it ends with 2 if a node did not answer. Otherwise it ends with 3 if a chain has more coins. It changes
 * nothing.
 */
import { readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import { readGateways } from '../provisioning/payments/gateways.ts';
import { type Compared, differenceOf, reconcile, verdictOf } from '../provisioning/payments/wallet/reconcile.ts';
import { askReplaced, lineOfReplaced } from '../provisioning/payments/wallet/shown.ts';

function lineOf(compared: Compared): string {
  const { name, coin, bookedUnits, chainUnits, pendingUnits, fault } = compared;
  const verdict = verdictOf(compared);
  const head = `${verdict.padEnd(7)} ${name} ${coin}: the books have ${bookedUnits} units`;
  if (verdict === 'SILENT') return `${head}. The chain did not answer: ${fault}`;
  if (verdict === 'UNKNOWN') return `${head}. The chain does not tell.`;
  if (verdict === 'RIGHT') return `${head}, and so has the chain.`;
  const pending = `Pending are ${pendingUnits.in} units in and ${pendingUnits.out} units out.`;
  return `${head}, and the chain has ${chainUnits}: a difference of ${differenceOf(compared)}. ${pending}`;
}

/** @returns the exit code */
async function compare(): Promise<number> {
  const config = readConfig();
  return inExistingDatabase(config, async ({ url, ownerUrl }) => {
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    try {
      const gateways = config.paymentsFile ? readGateways(config.paymentsFile) : { payments: [] };
      const signal = AbortSignal.timeout(3_600_000);
      const compared = await reconcile(db, gateways, signal);
      for (const one of compared) console.log(lineOf(one));
      const replaced = await askReplaced(db, gateways.payments, signal);
      for (const one of replaced) console.log(lineOfReplaced(one));
      if (!compared.length) console.log('There is no gateway with coins.');
      const verdicts = new Set<string>([...compared.map(verdictOf), ...replaced.map((one) => one.replaced)]);
      if (['WRONG', 'TWICE', 'ANNOUNCED'].some((verdict) => verdicts.has(verdict))) return 1;
      if (verdicts.has('SILENT')) return 2;
      return verdicts.has('SURPLUS') ? 3 : 0;
    } finally {
      await db.close();
    }
  });
}

try {
  process.exitCode = await compare();
} catch (error) {
  console.error(`The service cannot reconcile its gateways. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
