/** The pages of the things that a row names. */
import { html } from 'htm/preact';

/** The path of a thing by its id, whose prefix tells what it is. */
const BY_PREFIX: Record<string, (id: string) => string> = {
  'SRV-': (id) => `servers?row=${id}`,
  'TOP-': (id) => `payments?orderNumber=${id}`,
  acct_: (id) => `accounts?search=${id}&row=${id}`,
  pay_: (id) => `payments?row=${id}`,
  out_: (id) => `payouts?row=${id}`,
  case_: (id) => `cases?row=${id}`,
};

const ID = new RegExp(`\\b((?:${Object.keys(BY_PREFIX).join('|')})\\w+)`);

/** Returns a text in which each id of a thing leads to its page. */
export const withLinks = (text: string) =>
  text.split(ID).map((part, i) => (i % 2 ? html`<a href=${linkTo('id', part)}>${part}</a>` : part));

/** Returns the address of the page of a thing, or undefined for another value. A stranger's text is no id. */
export function linkTo(field: string, value: unknown): string | undefined {
  if (typeof value !== 'string' || !/^(id|.*Id|orderNumber|subject)$/.test(field) || !/^[\w-]+$/.test(value)) return;
  const prefix = Object.keys(BY_PREFIX).find((one) => value.startsWith(one));
  return prefix && `#${BY_PREFIX[prefix]!(value)}`;
}
