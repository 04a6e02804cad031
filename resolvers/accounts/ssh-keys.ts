/** SSH public keys. Adding a known key again returns the same object, so a caller need not look first. */
import { SshKey } from '../../entities/accounts/ssh-key.ts';
import { parseSshPublicKey } from '../../entities/accounts/ssh-public-key.ts';
import { find, insert, remove, update } from '../../entities/database/table.ts';
import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { isId, newId, randomText } from '../../entities/ids.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { found, limitReached } from '../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { lockOwnAccount } from './account.ts';
import { newLimits } from './auth/inherited-limits.ts';

/**
 * Adds a key. It ends with the caller's credential, if that has limits or belongs to an OAuth client. A known key that ends
 * with another credential then ends with the caller's.
 * @throws ApiError private_key_rejected, invalid_public_key, key_too_weak or ssh_key_limit_reached
 */
export async function addSshKey(
  context: Context,
  { publicKey, name }: { publicKey: string; name?: string | null | undefined },
): Promise<SshKey> {
  const accountId = accountOf(context);
  const { comment, ...parsed } = parseSshPublicKey(publicKey);
  return context.db.transaction(async (tx) => {
    await lockOwnAccount(tx, context);
    const same = await find(tx, SshKey, { accountId, fingerprint: parsed.fingerprint });
    if (same && !same.limitedBy) return same;
    const { expiresAt, limitedBy } = newLimits(context, {});
    const id = same?.id ?? newId('sshkey');
    if (expiresAt) await context.provisioning.accounts.expireSshKey(tx, { id, accountId });
    const created = { type: 'ssh_key.created', actor: actorOf(context) } as const;
    if (same) {
      // The key may stay longer now, so the log names the credential that added it again.
      const isAsBefore = same.limitedBy === limitedBy && same.expiresAt?.getTime() === expiresAt?.getTime();
      if (isAsBefore) return same;
      await update(tx, SshKey, { id }, { expiresAt, limitedBy });
      await record(tx, accountId, id, created);
      return { ...same, expiresAt, limitedBy };
    }
    if ((await tx.manager.countBy(SshKey, { accountId })) >= context.limits.sshKeys)
      throw limitReached('ssh_key_limit_reached', context.limits.sshKeys);
    const shownName = name ?? (comment || `key-${randomText(6)}`);
    await insert(tx, SshKey, { id, accountId, name: shownName, ...parsed, expiresAt, limitedBy });
    await record(tx, accountId, id, created);
    return tx.manager.findOneByOrFail(SshKey, { id });
  });
}

/** @throws ApiError not_found */
export async function findSshKey(context: Context, id: string): Promise<SshKey> {
  return found(isId('sshkey', id) && (await find(context.db, SshKey, { id, accountId: accountOf(context) })));
}

export function listSshKeys(context: Context, request: PageRequest): Promise<Page<SshKey>> {
  return pageOfAccount(context, SshKey, request);
}

/** Deletes a key. Existing servers keep it. @throws ApiError not_found */
export async function deleteSshKey(context: Context, id: string): Promise<{ id: string; deleted: true }> {
  const accountId = accountOf(context);
  if (!isId('sshkey', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    await lockOwnAccount(tx, context, 'while suspended');
    if (!(await remove(tx, SshKey, { id, accountId }))) throw new ApiError('not_found');
    await record(tx, accountId, id, { type: 'ssh_key.deleted', actor: actorOf(context) });
    return { id, deleted: true };
  });
}
