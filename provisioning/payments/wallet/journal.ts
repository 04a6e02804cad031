/** The names of ledger accounts as accountants and hledger write them. The ledger debits assets and expenses as they do. */

const NAMES: Readonly<Record<string, string>> = {
  revenue: 'revenues:servers',
  exchange: 'revenues:exchange',
  bonus: 'expenses:bonus',
  adjustment: 'expenses:adjustment',
  fees: 'expenses:fees',
  suspense: 'liabilities:suspense',
  payouts: 'liabilities:payouts',
};
const PARTS: Readonly<Record<string, string>> = {
  gateway: 'assets:gateway',
  wallet: 'assets:wallet',
  available: 'liabilities:customers:available',
  held: 'liabilities:customers:held',
  withheld: 'liabilities:customers:withheld',
  owed: 'assets:owed',
};

/** @throws Error if the account is unknown */
export function bookkeepingName(account: string): string {
  const [part = '', ...rest] = account.split(':');
  const name = NAMES[account] ?? (PARTS[part] && [PARTS[part], ...rest].join(':'));
  if (!name) throw new Error(`The ledger account ${account} has no name for hledger.`);
  return name;
}

/** Micro-USD as a decimal number with six digits, so that no digit gets lost. */
export function decimalOf(micros: bigint): string {
  const digits = String(micros < 0n ? -micros : micros).padStart(7, '0');
  return `${micros < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** A transfer as hledger reads it. */
export function hledgerEntry(entry: {
  id: string;
  at: Date;
  debit: string;
  credit: string;
  micros: bigint;
  orderNumber: string;
  description: string;
}): string {
  const { id, at, debit, credit, micros, orderNumber, description } = entry;
  // A semicolon begins a comment, and a bar divides the payee from the note.
  const text = description.replace(/[;|\p{Cc}]/gu, ' ').trim();
  const order = orderNumber ? `  ; order:${orderNumber}` : '';
  return `${at.toISOString().slice(0, 10)} * (${id}) ${text}${order}
    ${bookkeepingName(debit)}  ${decimalOf(micros)} USD
    ${bookkeepingName(credit)}  ${decimalOf(-micros)} USD

`;
}
