/** The accounts that ids and credentials belong to, for the log of the operator. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import type { Queryable } from '../database/transaction.ts';
import { type IdPrefix, isId, isOrderNumber } from '../ids.ts';
import { credentialKind, digest } from '../secrets.ts';

/** The tables whose rows name their account, by the prefix of their ids. */
const TABLES: Partial<Record<IdPrefix, readonly string[]>> = {
  tok: ['session'],
  key: ['api_key'],
  cl: ['oauth_client', 'ended_client'],
  login: ['pending_login'],
  sshkey: ['ssh_key'],
  srv: ['server'],
  top: ['top_up'],
  xfr: ['transfer'],
  pay: ['payment'],
  out: ['payout'],
  whk: ['webhook'],
  dlv: ['webhook_delivery'],
  agt: ['agent'],
  evt: ['event'],
  aud: ['audit_entry'],
  msg: ['message'],
  case: ['abuse_case'],
  note: ['account_note'],
  task: ['task'],
  prop: ['proposal'],
};
/** The tables whose rows name an order number, by the prefix of their ids. */
const OF_ORDERS: Partial<Record<IdPrefix, string>> = { fnd: 'finding', dep: 'deployment', job: 'manual_job' };
/** The columns with digests of credentials. */
const DIGESTS = [
  ['session', 'access_digest'],
  ['session', 'refresh_digest'],
  ['api_key', 'digest'],
  ['oauth_client', 'secret_digest'],
  ['pending_login', 'digest'],
] as const;

const PREFIXES = ['acct', ...Object.keys(TABLES), ...Object.keys(OF_ORDERS)] as IdPrefix[];
const isNamed = (name: string) =>
  isOrderNumber('SRV', name) || isOrderNumber('TOP', name) || PREFIXES.some((prefix) => isId(prefix, name));

const by = (table: string, condition: string) => `select account_id from ${table} where ${condition}`;
/** The accounts of the ids and order numbers $1, and of the credentials with the digests $2. */
const FIND_OWNERS = statement({ accountId: column.text() })`
  ${[
    'select id as account_id from account where id = any($1::text[])',
    ...['server', 'top_up'].map((table) => by(table, 'order_number = any($1::text[])')),
    ...Object.values(TABLES).flatMap((tables) => tables.map((table) => by(table, 'id = any($1)'))),
    ...Object.values(OF_ORDERS).map((table) =>
      by('server', `order_number in (select order_number from ${table} where id = any($1))`),
    ),
    ...DIGESTS.map(([table, name]) => by(table, `${name} = any($2::bytea[])`)),
  ].join(' union ')}`;

/** A word that may be an id or an order number, also within a sentence. */
const NAME = /[A-Za-z]+[-_][0-9A-Za-z]+/g;

/** Returns the words of a sentence that may name an account. */
export const wordsOf = (text: string): readonly string[] => text.match(NAME) ?? [];

/** Returns the existing accounts that texts name by an id, an order number or a credential. A text may be a header. */
export async function ownersOf(db: Queryable, texts: readonly string[]): Promise<string[]> {
  const names = texts.filter(isNamed);
  const credentials = texts.flatMap((text) => text.split(/\s+/)).filter(credentialKind);
  const found =
    names.length || credentials.length ? await FIND_OWNERS.all(db, [names, credentials.map((one) => digest(one))]) : [];
  // Work of the service itself belongs to no account.
  return found.map(({ accountId }) => accountId).filter((name) => isId('acct', name));
}
