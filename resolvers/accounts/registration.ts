/**
 * Slows mass registration. Above a rate, the service demands a proof of work (hashcash). It is a number that gives
 * the SHA-256 of the challenge and the number some leading zero bits. The challenge carries its own end and signature, so the
 * service stores only solved ones, until they end.
 *
 * An onion service demands a proof always. Its callers have one address, or as many circuits as they like.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { NOTE_SOLVED, REGISTRATIONS } from '../../entities/accounts/registration.ts';
import { LOCK_NAME } from '../../entities/database/lock-name.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError, HOW_TO_PROVE_WORK } from '../../entities/errors.ts';
import { isCircuit, isOnionHost } from '../../entities/networks.ts';
import type { Context } from '../context.ts';

const CHALLENGE_SECONDS = 300;
/** The load makes a proof up to 64 times as hard. */
const LOAD_BITS_MAX = 6;
/** The load may rise by so many bits while a caller solves. Callers must not stock easy challenges for a high load. */
const RISING_BITS = 2;

/**
 * Admits a registration within the rate, or with a proof of work.
 * @returns whether the caller has proven work
 * @throws ApiError proof_of_work_required
 */
export async function admitRegistration(context: Context, proof?: string | null): Promise<boolean> {
  const recent = await recentIn(context, context.db);
  if (recent.accounts < context.registrations.perMinute && !isOnion(context)) return false;
  if (proof && (await isValid(context, recent, proof))) return true;
  throw refusal(context, recent, proof);
}

/**
 * Counts again for a caller without a proof, in the transaction that adds the account. The lock lasts until its end, so callers
 * at once exceed no rate.
 * @throws ApiError proof_of_work_required
 */
export async function admitUnproven(context: Context, tx: Transaction): Promise<void> {
  await LOCK_NAME.all(tx, ['registrations']);
  const recent = await recentIn(context, tx);
  if (recent.accounts >= context.registrations.perMinute) throw refusal(context, recent);
}

type Recent = NonNullable<Awaited<ReturnType<typeof REGISTRATIONS.first>>>;
const recentIn = async ({ registrations }: Context, db: Queryable): Promise<Recent> =>
  (await REGISTRATIONS.first(db, [registrations.perMinute * 2 ** LOAD_BITS_MAX, CHALLENGE_SECONDS]))!;

/** The leading zero bits that the service demands at present. */
const bitsAt = ({ registrations: { perMinute, proofBits } }: Context, recent: Recent): number =>
  proofBits + Math.max(0, Math.floor(Math.log2(recent.accounts / perMinute)));

/** Makes the error with a new challenge. */
function refusal(context: Context, recent: Recent, proof?: string | null): ApiError {
  const { vault } = context;
  const unsigned = `1:${bitsAt(context, recent)}:${recent.ends}:${randomBytes(12).toString('base64url')}`;
  const challenge = `${unsigned}:${signatures(vault, unsigned)[0]}`;
  const cause = proof
    ? 'The proof of work is wrong, too old, too easy by now, or was used before. Solve the new challenge.'
    : isOnion(context) && 'An onion service asks each registration for a proof of work.';
  return new ApiError('proof_of_work_required', cause ? `${cause} ${HOW_TO_PROVE_WORK}` : undefined, { challenge });
}

/** Whether Tor brings the caller. */
const isOnion = ({ publicUrl, host = '', address }: Context) =>
  isCircuit(address) || isOnionHost(host) || isOnionHost(new URL(publicUrl).hostname);

/**
 * Signs the first members of a challenge: version, bits, end in seconds since the epoch, and nonce. The first signature is
 * that of the current key. Another process may have signed with a previous one.
 */
const signatures = (vault: Context['vault'], text: string) =>
  vault.deriveAll('registration challenges').map((key) => createHmac('sha256', key).update(text).digest('base64url'));

/** Checks a proof, which is a challenge and a number with a colon, and uses it up. */
async function isValid(context: Context, recent: Recent, proof: string): Promise<boolean> {
  const { db, vault } = context;
  const parts = proof.split(':');
  if (parts.length !== 6) return false;
  const [, bits, end, nonce, given] = parts as [string, string, string, string, string];
  const signed = Buffer.from(given);
  const isSigned = signatures(vault, parts.slice(0, 4).join(':'))
    .map((one) => Buffer.from(one))
    .some((one) => one.length === signed.length && timingSafeEqual(one, signed));
  if (!isSigned) return false;
  if (Number(bits) < bitsAt(context, recent) - RISING_BITS) return false;
  if (zeroBits(createHash('sha256').update(proof).digest()) < Number(bits)) return false;
  return (await NOTE_SOLVED.first(db, [nonce, Number(end)])) !== undefined;
}

/** Counts the leading zero bits of a hash. */
function zeroBits(hash: Buffer): number {
  const first = hash.findIndex((byte) => byte !== 0);
  return first < 0 ? hash.length * 8 : first * 8 + Math.clz32(hash[first]!) - 24;
}
