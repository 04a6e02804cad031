/** The published digests of the audit log. Strangers keep them, and so see when somebody wrote the log anew. */
import { ApiError } from '../../entities/errors.ts';
import { type AuditDigest, FIND_PUBLISHED, publishedOf } from '../../entities/history/audit-signature.ts';
import type { Context } from '../context.ts';

export type { AuditDigest } from '../../entities/history/audit-signature.ts';

/** Returns the digest of a number, or the latest. @throws ApiError not_found */
export async function findAuditDigest({ db }: Context, number: number | null | undefined): Promise<AuditDigest> {
  const signature = await FIND_PUBLISHED.first(db, [number ?? null]);
  const published = signature && publishedOf(signature);
  if (!published) throw new ApiError('not_found');
  return published;
}
