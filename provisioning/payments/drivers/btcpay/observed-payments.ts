/** Reads the payments of an invoice one by one, so that an odd one delays no sound one. */
import type { ObservedPayment, OpenInvoice } from '../driver.ts';
import { unitsIn } from './amounts.ts';
import type { MethodSettings } from './coins.ts';
import type { GreenfieldPayment } from './greenfield.ts';

/** Micro-USD: more than any payment is worth, by the rate of the invoice. The ledger has room for thousands of them. */
const WORTH_MAX_MICROS = 10n ** 15n;
/** The last second of the year 9999. A time in milliseconds is later. */
const SECONDS_MAX = 253_402_300_799;

interface Read {
  settings: MethodSettings;
  confirmationsRequired: number;
  invoice: OpenInvoice;
  /** Called with a sentence about each payment that cannot count. */
  reject: (problem: string) => void;
}

/** Returns the sound payments, each once. It leaves out those below one unit of the coin. */
export function observedPayments(listed: readonly GreenfieldPayment[], read: Read): ObservedPayment[] {
  const sound = new Map<string, ObservedPayment>();
  for (const payment of listed) {
    try {
      const observed = observedPayment(payment, read);
      const key = `${observed.txId} ${observed.position}`;
      const known = sound.get(key);
      if (known && known.units !== observed.units) throw new Error('another one has its id');
      if (observed.units > 0n && !known) sound.set(key, observed);
    } catch (fault) {
      const name = JSON.stringify(payment.id).slice(0, 100);
      read.reject(`BTCPay lists a payment ${name} that cannot count: ${(fault as Error).message}`);
    }
  }
  return [...sound.values()];
}

/** @throws Error that says what is wrong with the payment */
function observedPayment(
  { id, status, value, receivedDate }: GreenfieldPayment,
  { settings: { code, decimals }, confirmationsRequired, invoice }: Read,
): ObservedPayment {
  if (!/^[!-~]{1,200}$/.test(id)) throw new Error('its id is no text');
  // On a chain the id names an output, such as f4e8…-1. Over Lightning it is the hash of the payment.
  const [, txId = id, position = '0'] = /^([0-9a-f]{64})-(\d{1,9})$/.exec(id) ?? [];
  const units = unitsIn(value, decimals);
  if (units * invoice.amountMicros > WORTH_MAX_MICROS * unitsIn(invoice.amountCrypto, decimals))
    throw new Error(`${value} is too much`);
  if (!(receivedDate >= 0 && receivedDate <= SECONDS_MAX)) throw new Error(`${receivedDate} is no time in seconds`);
  return {
    txId,
    position: Number(position),
    coin: code,
    address: invoice.walletAddress!,
    units,
    confirmations: status === 'Settled' ? confirmationsRequired : 0,
    at: new Date(receivedDate * 1000),
  };
}
