/** Renders a receipt as a page to print. It has no scripts, and loads nothing. */
import { createHash } from 'node:crypto';
import type { JsonSchema } from '../compile/json-schema.ts';
import { preferredType } from './accept.ts';

export const RECEIPT_TYPE = 'text/html';
export const RECEIPT_SCHEMA: JsonSchema = {
  description: 'The receipt as a page to print.',
  type: 'string',
  maxLength: 2 ** 22,
  pattern: '^<!doctype html>',
};

/** Whether an Accept header prefers a page to JSON. */
export const wantsPage = (accept: string | undefined): boolean => preferredType(accept, RECEIPT_TYPE) !== undefined;

const STYLE = `:root{color-scheme:light dark}
body{font:11pt/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 1rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:0 0 1.5rem}
dt{opacity:.7}dd{margin:0;overflow-wrap:anywhere}table{width:100%;border-collapse:collapse}
th,td{text-align:left;vertical-align:top;padding:.35rem .5rem .35rem 0;border-bottom:1px solid color-mix(in srgb,currentColor 25%,transparent)}
small{display:block;opacity:.7;overflow-wrap:anywhere}.n{text-align:right;padding-right:0;white-space:nowrap;font-variant-numeric:tabular-nums}
tfoot td{font-weight:600;border:0}tr{break-inside:avoid}
@page{size:A4;margin:18mm}@media print{:root{color-scheme:light}body{margin:0;max-width:none;padding:0}}`;
/** Allows this style only. */
export const RECEIPT_CSP = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'`;

interface Receipt {
  number: string;
  account_id: string;
  from: string;
  to: string;
  issued_at: string;
  total_usd: number;
  lines: ({ amount_usd: number } & Record<
    'at' | 'description' | 'order_number' | 'coin' | 'amount_crypto' | 'tx_id',
    string | null
  >)[];
}

const escaped = (text: string | null): string =>
  (text ?? '').replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
const minuteOf = (time: string | null): string => escaped((time ?? '').slice(0, 16).replace('T', ' '));
/** To make a format takes longer than to use it. */
const USD = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 });
/** At least two decimals, at most six. */
const usd = (amount: number): string => USD.format(amount).replace(/^-/, '\u2212');

/** @param json the answer */
export function receiptPage(json: string): string {
  const { number, account_id, from, to, issued_at, total_usd, lines } = JSON.parse(json) as Receipt;
  const rows = lines.map(({ at, description, order_number, amount_usd, coin, amount_crypto, tx_id }) => {
    const paid = [amount_crypto && `${amount_crypto} ${coin}`, tx_id].filter(Boolean).join(' by ');
    return `<tr><td>${minuteOf(at)}<td>${escaped(description)}<small>${escaped(order_number)}</small><small>${escaped(paid)}</small><td class="n">${usd(amount_usd)}`;
  });
  const further = Math.round((total_usd - lines.reduce((sum, { amount_usd }) => sum + amount_usd, 0)) * 1e6) / 1e6;
  if (further) rows.push(`<tr><td><td>Further changes, which the usage lists<td class="n">${usd(further)}`);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Receipt ${escaped(number)}</title><style>${STYLE}</style>
<h1>Receipt ${escaped(number)}</h1>
<dl><dt>Account<dd>${escaped(account_id)}<dt>From<dd>${minuteOf(from)} UTC<dt>To<dd>${minuteOf(to)} UTC<dt>Issued<dd>${minuteOf(issued_at)} UTC</dl>
<table><thead><tr><th>Time (UTC)<th>Change of the balance<th class="n">USD<tbody>
${rows.join('\n')}
<tfoot><tr><td><td>Total<td class="n">${usd(total_usd)}</table></html>
`;
}
