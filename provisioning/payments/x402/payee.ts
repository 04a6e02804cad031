/** The payee of x402, which must be no deposit address. A payment to it would count as one by x402, and as one of a top-up. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { NEXT_DEPOSIT } from '../../../entities/payments/deposit.ts';
import { IS_GIVEN_ADDRESS } from '../../../entities/payments/top-up.ts';
import type { PaymentDriver } from '../drivers/driver.ts';
import { isSameHex, type X402Driver } from '../drivers/x402/driver.ts';

/** How many addresses around the next one the start checks. `openInvoice` refuses the payee among later ones. */
const AHEAD = 100;

/** @throws Error if the payee is a deposit address that the service has given out, or soon would */
export async function requireOwnPayee(
  db: Queryable,
  { terms: { payTo } }: X402Driver,
  drivers: readonly PaymentDriver[],
): Promise<void> {
  const given = await IS_GIVEN_ADDRESS.first(db, [payTo]);
  if (given!.known) throw new Error(`payTo of x402 is ${payTo}, which is the deposit address of a top-up. ${REMEDY}`);
  for (const driver of drivers) {
    if (!driver.depositAddress) continue;
    const source = driver.depositSource!(driver.coins()[0]!.code);
    const next = (await NEXT_DEPOSIT.first(db, [source]))?.next ?? 0;
    for (let deposit = Math.max(0, next - AHEAD); deposit < next + AHEAD; deposit++)
      if (isSameHex(await driver.depositAddress(deposit), payTo))
        throw new Error(`payTo of x402 is ${payTo}, which is deposit address ${deposit} of an xpub. ${REMEDY}`);
  }
}
const REMEDY = 'Take an address of another account of the wallet.';
