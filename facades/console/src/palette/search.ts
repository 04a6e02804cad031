/** The things that a text in the palette names: accounts and servers. */
import { signal } from '@preact/signals';
import { graphql, may } from '../api.ts';
import { afterLast } from '../pace.ts';
import { go } from '../place.ts';
import { HOSTNAME, ORDER_NUMBER } from './patterns.ts';

/** A line of the palette. No two lines have the same label and hint. */
export interface Command {
  label: string;
  hint: string;
  run: () => void;
}
interface Account {
  id: string;
  email: string | null;
}
interface Server {
  orderNumber: string;
  hostname: string;
}
interface Answer {
  accounts?: Account[];
  servers?: { data: Server[] };
  server?: Server;
}

/** The things that the text of the palette names, as far as the service has answered. */
export const hits = signal<Command[]>([]);

const HITS_MAX = 6;
/** The service finds no account by less of an email. */
const LETTERS_MIN = 3;
const afterTyping = afterLast(200);

/** The root fields that may find a thing. A text of another form would make the service refuse the whole document. */
const QUERIES = [
  { field: 'accounts', takes: 'Line!', fits: /./, of: 'accounts(search: $accounts) { id email }' },
  {
    ...{
      field: 'servers',
      takes: 'Hostname!',
      of: 'servers(hostname: $servers, limit: 3) { data { orderNumber hostname } }',
    },
    fits: HOSTNAME,
  },
  {
    ...{ field: 'server', takes: 'ID!', of: 'server(orderNumber: $server) { orderNumber hostname }' },
    fits: new RegExp(ORDER_NUMBER, 'i'),
  },
];

/** Counts the texts. The palette ignores an answer for an older text. */
let asked = 0;

/** Looks for the things that the text names after a rest of the keys. The hits of the text before it go at once. */
export function look(text: string): void {
  const own = ++asked;
  hits.value = [];
  afterTyping(async () => {
    // The palette works without hits.
    const found = text.length < LETTERS_MIN ? [] : await hitsOf(text).catch(() => []);
    if (own === asked) hits.value = found;
  });
}

/** @throws Refusal */
async function hitsOf(text: string): Promise<Command[]> {
  const fitting = QUERIES.filter(({ field, fits }) => may(field) && fits.test(text));
  if (!fitting.length) return [];
  const variables = fitting.map(({ field, takes }) => `$${field}: ${takes}`).join(', ');
  const given = { accounts: text, servers: text, server: text.toUpperCase() };
  const {
    accounts = [],
    servers,
    server,
  } = await graphql<Answer>(`query (${variables}) { ${fitting.map(({ of }) => of).join(' ')} }`, given);
  // Many emails may begin with the text. They would leave no room for the servers, which fit it exactly.
  const named = [...(server ? [server] : []), ...(servers?.data ?? [])];
  return [...named.map(commandOfServer), ...accounts.map(commandOfAccount)].slice(0, HITS_MAX);
}

/** Servers may share a host name. */
const commandOfServer = ({ orderNumber, hostname }: Server): Command => ({
  label: hostname,
  hint: `server ${orderNumber}`,
  run: () => go('servers', { row: orderNumber }),
});
/** An agent has no email. */
const commandOfAccount = ({ id, email }: Account): Command => ({
  label: email ?? id,
  hint: 'account',
  run: () => go('accounts', { search: id, row: id }),
});
