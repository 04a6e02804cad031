/** The list of payouts that the operator signs offline, in the forms that wallets take. */
import { jsonNumber } from '../../../entities/json.ts';
import type { Payout } from '../../../entities/payments/payout.ts';
import { formatUnits, parseUnits } from '../top-ups/amount.ts';

/** The coins whose wallets have `sendmany`. */
const SENDMANY = ['BTC', 'LTC', 'DOGE'];

/** Returns the payouts as one JSON document. */
export function exportedPayouts(payouts: readonly Payout[]) {
  const amountOf = ({ units, decimals }: Payout) => formatUnits(BigInt(units), decimals);
  const of = (...coins: string[]) => payouts.filter(({ coin }) => coins.includes(coin));
  /** Wallets refuse an address twice. */
  const sendmany = (coin: string) => {
    const amounts: Record<string, string> = {};
    for (const payout of of(coin)) {
      const units = parseUnits(amounts[payout.address] ?? '0', payout.decimals) + BigInt(payout.units);
      amounts[payout.address] = formatUnits(units, payout.decimals);
    }
    return amounts;
  };
  return {
    payouts: payouts.map((payout) => {
      const { id, network, coin, address, units, source } = payout;
      return { id, network, coin, address, units, amount: amountOf(payout), source };
    }),
    /** For `sendmany "" '…'`, by coin. */
    sendmany: Object.fromEntries(SENDMANY.filter((coin) => of(coin).length).map((coin) => [coin, sendmany(coin)])),
    /** The destinations of the call `transfer` of monero-wallet-rpc, in piconero. */
    transfer: of('XMR').map(({ address, units }) => ({ address, amount: jsonNumber(units) })),
  };
}
