/** Messages between the operator and customers. A customer reads the own ones, and the operator those of all accounts. */
import type { EntitySchema } from 'typeorm';
import { And, Equal, IsNull, Not, Raw } from 'typeorm';
import { AbuseCase } from '../../entities/accounts/abuse-case.ts';
import { Account } from '../../entities/accounts/account.ts';
import {
  COUNT_RECIPIENTS,
  MARK_ALL_READ,
  MARK_READ,
  Message,
  type MessageSender,
  type RELATED_TYPES,
  SECONDS_TO_A_DAY_OLD,
} from '../../entities/accounts/message.ts';
import { exists, find } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { KeptRequest, KeyTaken } from '../../entities/idempotency.ts';
import { isId, newId } from '../../entities/ids.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { HAS_PAID, hasPaidSql } from '../../entities/payments/payer.ts';
import { TopUp } from '../../entities/payments/top-up.ts';
import { Server } from '../../entities/servers/server.ts';
import { Incident } from '../../entities/transparency/transparency.ts';
import { type Letter, writeMessages } from '../../provisioning/index.ts';
import { actorOf, type Context, callsCountAs, requireAccount, type Viewer } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { requireRegion } from '../servers/hosts.ts';
import { lockedAccount, lockOwnAccount } from './account.ts';
import { keptForLogins } from './auth/scope.ts';

export { MESSAGE_SENDERS, RELATED_TYPES } from '../../entities/accounts/message.ts';

/** The messages of a customer in 24 hours, and those of an account that never paid. */
const PER_DAY = 20;
const UNPAID_PER_DAY = 5;

type RelatedType = (typeof RELATED_TYPES)[number];
/** The table of each related thing, and the column that callers name. An incident belongs to no account. */
const RELATED = {
  SERVER: { table: Server, key: 'orderNumber', isOwn: true },
  TOPUP: { table: TopUp, key: 'orderNumber', isOwn: true },
  MESSAGE: { table: Message, key: 'id', isOwn: true },
  CASE: { table: AbuseCase, key: 'id', isOwn: true },
  INCIDENT: { table: Incident, key: 'id', isOwn: false },
} as const;

/** A message that a caller writes. */
export interface GivenMessage {
  subject: string;
  body: string;
  related?: { type: RelatedType; id: string } | null | undefined;
}
/** The recipients of a message of the operator: exactly one of them. */
export interface GivenRecipients {
  accountId?: string | null | undefined;
  region?: string | null | undefined;
  all?: boolean | null | undefined;
}
/** A message of the operator. To many accounts, a worker writes the messages, and its task has the id as its subject. */
export interface SentMessage {
  id: string;
  message: Message | null;
}

/** The messages of a list. For a customer, `paid` has no meaning. */
export interface MessageFilter {
  accountId?: string | null | undefined;
  /** Whether its account has paid, or never did. */
  paid?: boolean | null | undefined;
  unread?: boolean | null | undefined;
  /** The side that wrote them. */
  from?: MessageSender | null | undefined;
}
const PAID = Raw(hasPaidSql);

/** Returns a page of messages, newest first. @throws ApiError not_found for the account of somebody else */
export async function listMessages(
  context: Context,
  request: PageRequest,
  { accountId, paid, unread, from }: MessageFilter,
): Promise<Page<Message>> {
  requireAccount(context, accountId);
  const accounts = [...(accountId ? [Equal(accountId)] : []), ...(paid == null ? [] : [paid ? PAID : Not(PAID)])];
  const senders = [...(unread ? [senderTo(context)] : []), ...(from ? [from] : [])].map((one) => Equal(one));
  return pageOfAccount(context, Message, request, {
    ...(accounts.length && { accountId: And(...accounts) }),
    ...(unread && { readAt: IsNull() }),
    ...(senders.length && { sender: And(...senders) }),
  });
}

/**
 * Writes a message of the caller to the operator. A suspended account may do so, too.
 * @throws ApiError rate_limited after too many messages in a day, or validation_failed for an unknown related thing
 */
export async function writeMessage(context: Context, given: GivenMessage): Promise<Message> {
  return context.db.transaction(async (tx) => {
    const accountId = await lockOwnAccount(tx, context, 'while suspended');
    await requireRoom(tx, accountId, context.viewer!);
    const letter = await letterOf(tx, given, accountId);
    const [message] = await writeMessages(tx, 'CUSTOMER', [accountId], letter, actorOf(context));
    await record(tx, OPERATOR_ACCOUNT, message!.id, { type: 'message.received', actor: actorOf(context) });
    return message!;
  });
}

/**
 * Marks a message as read. Doing it again changes nothing.
 * @throws ApiError not_found, or validation_failed for a message of the caller
 */
export async function markMessageRead(context: Context, id: string): Promise<Message> {
  const own = context.viewer?.accountId;
  return context.db.transaction(async (tx) => {
    const { accountId, sender } = found(
      isId('msg', id) && (await find(tx, Message, { id, ...(own && { accountId: own }) })),
    );
    if (own) await lockOwnAccount(tx, context, 'while suspended');
    else await lockAccount(tx, accountId);
    if (sender !== senderTo(context)) throw invalid('id', 'Only the recipient of a message marks it as read.');
    return (await MARK_READ.first(tx, [id]))!;
  });
}

/** Marks all messages of an account to the operator as read. @returns how many @throws ApiError not_found */
export async function markMessagesRead({ db }: Context, accountId: string): Promise<number> {
  return db.transaction(async (tx) => {
    await lockedAccount(tx, accountId);
    return (await MARK_ALL_READ.all(tx, [accountId])).length;
  });
}

/**
 * Sends a message of the operator to one account at once. A worker sends one to many accounts. The same key sends once in 24
 * hours.
 * @throws ApiError not_found, unknown_region, or validation_failed for other recipients or an unknown related thing;
 * idempotency_key_reused if the key names another message
 */
export async function sendMessage(
  context: Context,
  given: GivenMessage & GivenRecipients,
  key?: string | null,
): Promise<SentMessage> {
  if ([given.accountId, given.region, given.all].filter(Boolean).length !== 1)
    throw invalid('accountId', 'Name the recipients by exactly one of accountId, region and all.');
  return context.db.transaction(async (tx) => {
    if (!key) return send(tx, context, given);
    const request = { accountId: OPERATOR_ACCOUNT, method: 'MUTATION', path: 'sendMessage', key, input: given };
    const kept = new KeptRequest(request, context.vault);
    const earlier = await kept.find(tx).catch(refuseTaken);
    if (earlier) return { id: earlier.answer, message: (await find(tx, Message, { id: earlier.answer })) ?? null };
    await kept.claim(tx).catch(refuseTaken);
    const sent = await send(tx, context, given);
    await kept.keep(tx, sent.id);
    return sent;
  });
}

/** @throws ApiError idempotency_in_progress for a key whose request still runs */
function refuseTaken(error: unknown): never {
  throw error instanceof KeyTaken ? new ApiError('idempotency_in_progress', undefined, { retryAfter: 1 }) : error;
}

async function send(
  tx: Transaction,
  context: Context,
  { accountId, region, all: _, ...given }: GivenMessage & GivenRecipients,
): Promise<SentMessage> {
  const actor = actorOf(context);
  if (accountId) {
    found(isId('acct', accountId) && (await exists(tx, Account, { id: accountId })));
    const letter = await letterOf(tx, given, accountId);
    const [message] = await writeMessages(tx, 'OPERATOR', [accountId], letter, actor);
    return { id: message!.id, message: message! };
  }
  if (region) await requireRegion(tx, region);
  const id = newId('msg');
  const letter = await letterOf(tx, given, null);
  await context.provisioning.accounts.sendToMany(tx, id, { ...letter, region: region ?? null, actor });
  return { id, message: null };
}

/** Counts the accounts that a message to a region reaches. @param region absent: all @throws ApiError unknown_region */
export async function countRecipients({ db }: Context, region?: string | null): Promise<number> {
  if (region) await requireRegion(db, region);
  return (await COUNT_RECIPIENTS.first(db, [region ?? null]))!.accounts;
}

/** The sender of the messages that the caller receives. */
const senderTo = ({ viewer }: Context): MessageSender => (viewer?.accountId ? 'OPERATOR' : 'CUSTOMER');

/**
 * Keeps a part of a day's messages for logins, and half of it for another login. So the owner writes after a thief of one,
 * whose keys and refreshed tokens count with it.
 * @throws ApiError rate_limited
 */
async function requireRoom(tx: Transaction, accountId: string, viewer: Viewer): Promise<void> {
  const { paid } = (await HAS_PAID.first(tx, [accountId]))!;
  const most = paid ? PER_DAY : UNPAID_PER_DAY;
  const kept = keptForLogins(most);
  const keptForNext = Math.ceil(kept / 2);
  const own = most - (viewer.isLogin ? keptForNext : kept);
  // A key writes none of the part for another login, also after its own login has used up the others.
  const total = most - (viewer.isLogin ? 0 : keptForNext);
  const oldest =
    (await SECONDS_TO_A_DAY_OLD.first(tx, [accountId, total, null])) ??
    (await SECONDS_TO_A_DAY_OLD.first(tx, [accountId, own, callsCountAs(viewer)]));
  if (!oldest) return;
  const before = paid ? '' : ' before its first payment';
  throw new ApiError(
    'rate_limited',
    `An account sends at most ${most} messages in 24 hours${before}. Only its logins send the last ${kept} of these, and only another login the last ${keptForNext}. Log in again, or wait for retry_after.`,
    { retryAfter: Math.max(1, Math.ceil(oldest.seconds)) },
  );
}

/** @param accountId the account that must own the related thing; null: the message goes to many */
async function letterOf(
  db: Queryable,
  { subject: title, body, related }: GivenMessage,
  accountId: string | null,
): Promise<Letter> {
  if (!related) return { title, body, relatedType: null, relatedId: null };
  const { type, id } = related;
  const { table, key, isOwn } = RELATED[type];
  if (isOwn && accountId === null)
    throw invalid('related', 'A message to many accounts can only be about an incident.');
  const where = { [key]: id, ...(isOwn && { accountId }) };
  if (!(await exists(db, table as EntitySchema<object>, where)))
    throw invalid(
      'related',
      `The account has no ${type.toLowerCase()} ${id.slice(0, 64)}. Leave related out, or name one of its own.`,
    );
  return { title, body, relatedType: type, relatedId: id };
}
