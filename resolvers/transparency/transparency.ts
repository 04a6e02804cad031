/** The publications of the operator: the warrant canary and the peering. */
import { createHash } from 'node:crypto';
import { databaseTime } from '../../entities/database/clock.ts';
import { find, insert } from '../../entities/database/table.ts';
import { refuse } from '../../entities/errors.ts';
import { newId } from '../../entities/ids.ts';
import {
  CANARY_CODES,
  CANARY_DAYS,
  Canary,
  LATEST_CANARY,
  lockCanaries,
  Peering,
  type PeeringDocument,
} from '../../entities/transparency/transparency.ts';
import type { Context } from '../context.ts';
import { recordPublic } from './record.ts';

export { CANARY_CODES } from '../../entities/transparency/transparency.ts';

export type CanaryView = Omit<Canary, 'id' | 'createdAt'>;

/** The canary before the operator publishes one. It promises nothing. */
const UNPUBLISHED: CanaryView = {
  version: '0',
  issuedAt: new Date(0),
  expiresAt: new Date(0),
  codes: [],
  statement: 'The operator of this installation has not published a canary. This text promises nothing.',
  signedText: null,
  fingerprint: null,
  publicKey: null,
  freshness: null,
  sha256: '',
  previousSha256: null,
};
UNPUBLISHED.sha256 = digestOf(UNPUBLISHED);

export const findCanary = async ({ db }: Context): Promise<CanaryView> =>
  (await LATEST_CANARY.first(db)) ?? UNPUBLISHED;

/** Returns the state of a canary now. Silence makes it expire, and a missing code triggers it. */
export function canaryStatus({ codes, expiresAt }: CanaryView): 'VALID' | 'EXPIRED' | 'TRIGGERED' {
  if (expiresAt.getTime() > 0 && CANARY_CODES.some((code) => !codes.includes(code))) return 'TRIGGERED';
  return expiresAt.getTime() <= Date.now() ? 'EXPIRED' : 'VALID';
}

export interface CanaryStatement {
  statement: string;
  codes: string[];
  expiresAt?: Date | null | undefined;
  signedText?: string | null | undefined;
  fingerprint?: string | null | undefined;
  publicKey?: string | null | undefined;
  freshness?: string | null | undefined;
}

/** The first lines by PGP. A private key, or a text without a signature, has another one. */
const ARMOUR = {
  signedText: '-----BEGIN PGP SIGNED MESSAGE-----',
  publicKey: '-----BEGIN PGP PUBLIC KEY BLOCK-----',
} as const;
const CANARY_MS = CANARY_DAYS * 24 * 3_600_000;

/** Publishes the next canary, which names the digest of its predecessor. @throws ApiError validation_failed */
export async function publishCanary(context: Context, given: CanaryStatement): Promise<CanaryView> {
  for (const field of ['signedText', 'publicKey'] as const)
    if (given[field] && given[field].split('\n', 1)[0]!.trimEnd() !== ARMOUR[field])
      throw invalid(field, `${field} must begin with the line ${ARMOUR[field]}`);
  return context.db.transaction(async (tx) => {
    await lockCanaries(tx);
    const before = await LATEST_CANARY.first(tx);
    const issuedAt = await databaseTime(tx);
    const latest = new Date(issuedAt.getTime() + CANARY_MS);
    const expiresAt = given.expiresAt ?? latest;
    if (expiresAt <= issuedAt || expiresAt > latest)
      throw invalid('expiresAt', `expiresAt must be in the future, and at most ${CANARY_DAYS} days ahead.`);
    const canary = {
      id: newId('can'),
      version: String(Number(before?.version ?? 0) + 1),
      issuedAt,
      expiresAt,
      codes: given.codes,
      statement: given.statement,
      signedText: given.signedText ?? null,
      fingerprint: given.fingerprint ?? null,
      publicKey: given.publicKey ?? null,
      freshness: given.freshness ?? null,
      previousSha256: before?.sha256 ?? null,
      sha256: '',
    };
    canary.sha256 = digestOf(canary);
    await insert(tx, Canary, canary);
    await recordPublic(tx, context, canary.id, { type: 'canary.updated' });
    return canary;
  });
}

const invalid = (field: string, message: string) => refuse(field, 'invalid_value', message);

function digestOf({ signedText, statement, codes, issuedAt, expiresAt, previousSha256 }: CanaryView): string {
  const text =
    signedText ??
    [statement, codes.join(' '), issuedAt.toISOString(), expiresAt.toISOString(), previousSha256 ?? ''].join('\n');
  return createHash('sha256').update(text).digest('hex');
}

export type PeeringView = PeeringDocument & { updatedAt: Date };
const NO_PEERING: PeeringDocument = {
  asn: null,
  name: 'Not published',
  irrAsSet: null,
  policy: 'Not published',
  policyUrl: null,
  nocEmail: null,
  peeringdbUrl: null,
  infoPrefixes4: null,
  infoPrefixes6: null,
  exchanges: [],
  facilities: [],
};

export async function findPeering({ db }: Context): Promise<PeeringView> {
  const row = await find(db, Peering, { id: 'peering' });
  return { ...(row?.document ?? NO_PEERING), updatedAt: row?.updatedAt ?? new Date(0) };
}

/** Replaces the description of the network. */
export async function publishPeering(context: Context, document: PeeringDocument): Promise<PeeringView> {
  return context.db.transaction(async (tx) => {
    const updatedAt = await databaseTime(tx);
    await tx.manager.upsert(Peering, { id: 'peering', document, updatedAt }, ['id']);
    await recordPublic(tx, context, 'peering', { type: 'status.changed', resource: 'peering' });
    return { ...document, updatedAt };
  });
}
