/**
 * Signs the heads of the chains. The process has some pages of heads at a time: there may be as many chains as strangers made
 * accounts. So a day with many heads gets several texts, which follow each other.
 */
import { type KeyObject, sign } from 'node:crypto';
import { databaseTime } from '../database/clock.ts';
import * as column from '../database/column.ts';
import { LOCK_NAME } from '../database/lock-name.ts';
import { statement } from '../database/statement.ts';
import type { Transaction } from '../database/transaction.ts';
import { coveredSql, hasItsLines, linesDigest, type SignedLines } from './audit-lines.ts';
import {
  type AuditDigest,
  type AuditSignature,
  provenPart,
  publicKeyOf,
  publishedOf,
  SIGNATURE_BEFORE,
} from './audit-signature.ts';
import { linesOf, textDigest, writeSignedPart } from './audit-text.ts';
import { LEDGER_CHAIN } from './hash-chain.ts';

/** The first number after $1 that no signature has. */
const FIND_FREE_NUMBER = statement({ number: column.bigint() })`
  select coalesce(min(number), $1::bigint) + 1 as number from audit_signature as taken
    where number > $1 and exists (select from audit_signature where number = $1::bigint + 1)
      and not exists (select from audit_signature where number = taken.number::numeric + 1)`;
/**
 * The links that are older than an hour before $2, and that no text covers. A thief can change the times. $1: the digests of the
 * texts. At most $3.
 */
const FIND_STRAYS = statement({ accountId: column.text(), number: column.bigint() })`
  with ${coveredSql('$1')}
  select audit_link.account_id, number
    from audit_link left join covered on covered.account_id = audit_link.account_id
    where linked_at < $2::timestamptz - interval '1 hour' and number > coalesce(highest, 0)
      and exists (select from audit_entry where id = entry_id)
    limit $3`;
const HEAD = {
  accountId: column.text(),
  number: column.bigint(),
  hash: column.text(),
  createdAt: column.timestamp(),
  first: column.bigint(),
};
const LINKED = `select audit_link.account_id, number, hash, created_at, (created_at at time zone 'UTC')::date as day
        from audit_link join audit_entry on id = entry_id`;
/**
 * The heads of each day of the audit log whose links are younger than an hour before $1. Null: all heads. It adds older links: those
 * with the numbers $3 of the chains $2.
 */
const FIND_CHANGED_HEADS = statement(HEAD)`
  select distinct on (account_id, day) account_id, number, encode(hash, 'hex') as hash, created_at,
      min(number) over (partition by account_id, day) as first
    from (
      ${LINKED} where linked_at >= coalesce($1::timestamptz - interval '1 hour', '-infinity')
      union all ${LINKED} join unnest($2::text[], $3::bigint[]) as stray (of_account, place)
        on of_account = audit_link.account_id and place = number where linked_at < $1::timestamptz - interval '1 hour') as linked
    order by account_id, day, number desc`;
/** The head of the ledger. Every text has it, because transfers stay for ever, and signatures do not. */
const FIND_LEDGER_HEAD = statement(HEAD)`
  select account_id, number, encode(hash, 'hex') as hash, linked_at as created_at, 1::bigint as first
    from audit_link where account_id = '${LEDGER_CHAIN}' order by number desc limit 1`;
const INSERT_SIGNATURE = statement({})`
  insert into audit_signature (number, signed_text, public_key, signature) values ($1, $2, $3, $4)`;

const HOUR_MS = 3_600_000;
/** The heads of a page, and of a text. A text then has some 6 MB. */
const PAGE = 2_500;
const HEADS_MAX = 50_000;
/** With more old links that no text covers, the next one covers all heads. */
const STRAYS_MAX = 10_000;

interface Signed extends SignedLines {
  /** The time of the row. */
  signedAt: Date;
}

/** Finds the signatures of these keys, the latest first. A thief of the database can write signatures of other keys alone. */
async function* signaturesOf(tx: Transaction, keys: readonly Buffer[]): AsyncGenerator<Signed> {
  for (let below: bigint | null = null; ; ) {
    const row: AuditSignature | undefined = await SIGNATURE_BEFORE.first(tx, [below, keys]);
    if (!row) return;
    below = row.number;
    const part = provenPart(row);
    if (part) yield { ...row, part };
  }
}

/** Finds the latest signature of these keys. */
async function findLatest(tx: Transaction, keys: readonly Buffer[]): Promise<Signed | undefined> {
  for await (const signed of signaturesOf(tx, keys)) if (await hasItsLines(tx, signed)) return signed;
  return undefined;
}

interface Due {
  signedAt: Date;
  latest: Signed | undefined;
  /** The time of the latest text. Null: the next one covers all heads. */
  from: Date | null;
}

/** Finds what a signature has to follow. Undefined: the key signed within a day. */
async function findDue(tx: Transaction, publicKey: Buffer, others: readonly Buffer[]): Promise<Due | undefined> {
  const latest = await findLatest(tx, [publicKey, ...others]);
  const own = latest?.part.publicKey.equals(publicKey) ? latest : await findLatest(tx, [publicKey]);
  const signedAt = await databaseTime(tx);
  // When in doubt, the text covers all heads: after another key, an earlier version, or a clock that was ahead.
  const isSure = ({ part }: Signed) =>
    part.publicKey.equals(publicKey) && part.since !== undefined && +part.signedAt < +signedAt + HOUR_MS;
  // A thief can change the time of the row. An earlier one only makes the next signature earlier.
  const isYoung = (signed: Signed) => Math.min(+signed.signedAt, +signed.part.signedAt) > +signedAt - 24 * HOUR_MS;
  if (own && isSure(own) && isYoung(own)) return undefined;
  return { signedAt, latest, from: latest && isSure(latest) ? latest.part.signedAt : null };
}

/** Finds old links that no text of the key covers. Undefined: there are too many. */
async function findStrays(tx: Transaction, publicKey: Buffer, from: Date) {
  // A pooler ends statements after 20 seconds, and millions of lines take longer.
  await tx.query('set local statement_timeout = 0');
  const digests: string[] = [];
  for await (const signed of signaturesOf(tx, [publicKey])) digests.push(linesDigest(signed));
  const strays = await FIND_STRAYS.all(tx, [digests, from, STRAYS_MAX + 1]);
  return strays.length > STRAYS_MAX ? undefined : strays;
}

/**
 * Signs the heads, unless the same key did so within a day. While SECRET_KEY is replaced, workers have different keys, and
 * each key signs once a day. A text follows the latest one of the given keys, and names the public keys of the other keys.
 * So their signatures stay attributable after a new SECRET_KEY.
 * @param key signs
 * @param headsMax for tests: the heads of a text
 * @returns the new signatures
 */
export async function signHeads(
  tx: Transaction,
  [key, ...otherKeys]: readonly [KeyObject, ...KeyObject[]],
  headsMax = HEADS_MAX,
): Promise<AuditDigest[]> {
  const publicKey = publicKeyOf(key);
  const others = otherKeys.map(publicKeyOf);
  // It reads all texts before the lock, so that no other worker waits meanwhile.
  const before = await findDue(tx, publicKey, others);
  if (!before) return [];
  const strays = before.from ? await findStrays(tx, publicKey, before.from) : undefined;
  await LOCK_NAME.all(tx, ['audit signatures']);
  const due = await findDue(tx, publicKey, others);
  if (!due) return [];
  const isChange = strays !== undefined && due.from !== null;
  const given = [
    isChange ? before.from : null,
    (strays ?? []).map(({ accountId }) => accountId),
    (strays ?? []).map(({ number }) => number),
  ];
  const ofLedger = linesOf(await FIND_LEDGER_HEAD.all(tx));
  const write = writer(tx, key, others, due);
  let lines: string[] = [];
  let count = 0;
  for await (const page of FIND_CHANGED_HEADS.pages(tx, given, Math.min(PAGE, headsMax))) {
    if (count + page.length > headsMax) {
      await write(lines.join('') + ofLedger);
      [lines, count] = [[], 0];
    }
    lines.push(linesOf(page));
    count += page.length;
  }
  return write(lines.join('') + ofLedger);
}

/** Returns a function that signs lines of heads, and returns all signatures that it made. */
function writer(tx: Transaction, key: KeyObject, others: Buffer[], { signedAt, latest }: Due) {
  const publicKey = publicKeyOf(key);
  const made: AuditDigest[] = [];
  let [before, previous] = latest ? [latest.part.number, textDigest(latest.signedText)] : [0n, ''];
  let since = latest?.part.signedAt ?? null;
  return async (lines: string): Promise<AuditDigest[]> => {
    const { number } = (await FIND_FREE_NUMBER.first(tx, [before]))!;
    const signedText = writeSignedPart({ number, previous, signedAt, publicKey, others, since }, lines);
    const signature = sign(null, Buffer.from(signedText), key);
    await INSERT_SIGNATURE.all(tx, [number, `${signedText}\n${lines}`, publicKey, signature]);
    made.push(publishedOf({ number, signedText, publicKey, signature })!);
    [before, previous, since] = [number, textDigest(signedText), signedAt];
    return made;
  };
}
