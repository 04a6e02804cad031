/** Messages: the channel between the operator and a customer. The service sends no mail. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, nullable, type RowOf } from '../database/table.ts';
import { hasPaidSql } from '../payments/payer.ts';
import { isLoginSql } from './credential.ts';

export const MESSAGE_SENDERS = ['OPERATOR', 'CUSTOMER'] as const;
export type MessageSender = (typeof MESSAGE_SENDERS)[number];
/** The kinds of things that a message can be about. */
export const RELATED_TYPES = ['SERVER', 'TOPUP', 'MESSAGE', 'INCIDENT', 'CASE'] as const;

export const Message = entity('message', {
  id: column.key(),
  /** The customer, who sends the message or gets it. */
  accountId: column.text(),
  sender: column.oneOf(...MESSAGE_SENDERS),
  /** Callers know it as the subject. The subject of an event has that name in SQL. */
  title: column.text(),
  body: column.text(),
  /** The kind of the thing that the message is about, and its id or order number. Both are null, or none is. */
  relatedType: nullable(column.oneOf(...RELATED_TYPES)),
  relatedId: nullable(column.text()),
  /** The API key or session that wrote it. Null: the operator did, or the message is older than the column. */
  credentialId: nullable(column.text()),
  createdAt: column.now(),
  /** When the recipient marked it as read. */
  readAt: nullable(column.timestamp()),
});
export type Message = RowOf<typeof Message>;

/** Inserts messages of the sender $3 with the ids $1 to the accounts $2. $4 title, $5 body, $6 and $7 what they are about, $8 the credential. */
export const INSERT_MESSAGES = statement(Message.columns)`
  insert into message (id, account_id, sender, title, body, related_type, related_id, credential_id)
  select id, account_id, $3, $4, $5, $6, $7, $8 from unnest($1::text[], $2::text[]) as given(id, account_id)
  returning ${columnsOf(Message)}`;

/** Marks the message $1 as read. The first time stays. */
export const MARK_READ = statement(Message.columns)`
  update message set read_at = coalesce(read_at, now()) where id = $1 returning ${columnsOf(Message)}`;

/**
 * Seconds until the $2th newest message of the customer $1 is a day old; no row if it is older. With $3, messages of other
 * logins than the refresh family $3 do not count.
 */
export const SECONDS_TO_A_DAY_OLD = statement({ seconds: column.real() })`
  select extract(epoch from created_at + interval '1 day' - now())::float8 as seconds from message
  where account_id = $1 and sender = 'CUSTOMER' and created_at > now() - interval '1 day'
    and not exists (select from session where session.id = credential_id and family_id <> $3 and ${isLoginSql('session')})
  order by id desc offset $2::int - 1 limit 1`;

/** A message that the operator should still read. */
const UNREAD = "sender = 'CUSTOMER' and read_at is null";
/** Marks the messages of the customer $1 as read. */
export const MARK_ALL_READ = statement({ id: column.key() })`
  update message set read_at = now() where account_id = $1 and ${UNREAD} returning id`;

const PAID = hasPaidSql('message.account_id');
/** The oldest $1 messages that the operator has not read, of accounts that have paid. */
export const LIST_UNREAD_OF_PAYERS = statement(Message.columns)`
  select ${columnsOf(Message)} from message where ${UNREAD} and ${PAID} order by id limit $1::int`;
/** Counts those of accounts that never paid, and these accounts. `since` is the time of the oldest one. */
export const COUNT_UNREAD_OF_OTHERS = statement({
  messages: column.int(),
  accounts: column.int(),
  since: nullable(column.timestamp()),
})`
  select count(*)::int as messages, count(distinct account_id)::int as accounts, min(created_at) as since
  from message where ${UNREAD} and not ${PAID}`;

/** Whether an account gets a message to many. With a region, only accounts with a server there do. */
const isRecipientSql = (region: string) => `(${region}::text is null or exists (select from server
  where server.account_id = account.id and region = ${region} and status not in ('FAILED', 'DELETED')))`;
/** The next $4 recipients after the account $1, for the region $3. Their accounts are older than the time $2. */
export const NEXT_RECIPIENTS = statement({ id: column.key() }, { replans: true })`
  select id from account where id > $1 and created_at <= $2 and ${isRecipientSql('$3')} order by id limit $4::int`;
/** Counts the accounts that a message to the region $1 reaches; null: to all. */
export const COUNT_RECIPIENTS = statement({ accounts: column.int() }, { replans: true })`
  select count(*)::int as accounts from account where ${isRecipientSql('$1')}`;
