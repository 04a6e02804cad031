/** Tells the later of two operators of the change by the earlier one. The words name its actor, its time and its values. */
import { isDeepStrictEqual } from 'node:util';
import type { Transaction } from '../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { LAST_CHANGE } from '../entities/history/change.ts';
import type { EventType } from '../entities/history/event.ts';
import { invalid } from './errors.ts';

interface Seen<T> {
  /** The thing, in words. */
  what: string;
  /** The present values. The caller holds the lock of their row. */
  present: T;
  /** The values that the operator saw. Absent: any. */
  seen: T | null | undefined;
  /** The argument that carries them. Default: `seen`. */
  field?: string;
  /** The event of changes, and its subject. */
  type: EventType;
  subject: string;
  /** The account of the event. Default: the operator's. */
  account?: string;
}

/** Compares the values that an operator saw with the present ones. @throws ApiError validation_failed */
export async function requireSeen<T>(tx: Transaction, given: Seen<T>): Promise<void> {
  const { what, present, seen, field = 'seen', type, subject, account = OPERATOR_ACCOUNT } = given;
  if (seen == null || isDeepStrictEqual(seen, present)) return;
  const last = await LAST_CHANGE.first(tx, [account, subject, type]);
  const who = last?.actorName ?? 'Another operator';
  const how = last ? `, at ${last.createdAt.toISOString()}${inWords(last.data)}` : '';
  throw invalid(field, `${who} has changed ${what} meanwhile${how}. Look at it again.`);
}

/** The most letters of the new values. */
const WORDS_MAX = 200;
/** The new values of a change. Its event also has the earlier ones, as `before`. */
function inWords({ before: _, ...changed }: Record<string, unknown>): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  const parts = Object.entries(changed).map(([name, value]) => `${name} ${text(value)}`);
  const words = parts.join(', ');
  return words && ` (${words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX)} …` : words})`;
}
