/**
 * `npm run reconcile`: compares the coins of each gateway in the books with those on its chain, and names each difference. It ends
 * with 1 if pending payments and payouts do not explain one. It changes nothing.
 */
import { readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import { readGateways } from '../provisioning/payments/gateways.ts';
import { type Compared, differenceOf, isExplained, reconcile } from '../provisioning/payments/wallet/reconcile.ts';

function lineOf(compared: Compared): string {
  const { name, coin, bookedUnits, chainUnits, pendingUnits, fault } = compared;
  const difference = differenceOf(compared);
  const head = `${name} ${coin}: the books have ${bookedUnits} units`;
  if (difference === undefined) return `UNKNOWN ${head}. ${fault ?? 'The chain does not tell.'}`;
  if (difference === 0n) return `RIGHT   ${head}, and so has the chain.`;
  const pending = `Pending are ${pendingUnits.in} units in and ${pendingUnits.out} units out.`;
  return `${isExplained(compared) ? 'PENDING' : 'WRONG  '} ${head}, and the chain has ${chainUnits}: a difference of ${difference}. ${pending}`;
}

async function compare(): Promise<boolean> {
  const config = readConfig();
  return inExistingDatabase(config, async ({ url, ownerUrl }) => {
    const db = await Database.open(url, { poolSize: 2, ownerUrl });
    try {
      const gateways = config.paymentsFile ? readGateways(config.paymentsFile) : { payments: [] };
      const compared = await reconcile(db, gateways, AbortSignal.timeout(3_600_000));
      for (const one of compared) console.log(lineOf(one));
      if (!compared.length) console.log('There is no gateway with coins.');
      return compared.every(isExplained);
    } finally {
      await db.close();
    }
  });
}

try {
  process.exitCode = (await compare()) ? 0 : 1;
} catch (error) {
  console.error(`The service cannot reconcile its gateways. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
