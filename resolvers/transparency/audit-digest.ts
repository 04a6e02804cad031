/** The published digests of the audit log and of the ledger. Strangers keep them, and see when somebody wrote them anew. */
import { ApiError } from '../../entities/errors.ts';
import { type AuditDigest, findPublished, publicKeyOf, signingKeys } from '../../entities/history/audit-signature.ts';
import type { Context } from '../context.ts';

export type { AuditDigest } from '../../entities/history/audit-signature.ts';

/** Returns the digest of a number, or the latest. @throws ApiError not_found */
export async function findAuditDigest({ db, vault }: Context, number: number | null | undefined): Promise<AuditDigest> {
  const published = await findPublished(db, number ?? null, signingKeys(vault).map(publicKeyOf));
  if (!published) throw new ApiError('not_found');
  return published;
}
