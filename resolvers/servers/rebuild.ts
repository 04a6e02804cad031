/** What a rebuilt server is made with: what was asked for, and else what it was made with before. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { newMachinePassword } from '../../entities/secrets.ts';
import type { Server, ServerChange } from '../../entities/servers/server.ts';
import type { Operation } from './operation.ts';

export interface Rebuild {
  change: Omit<Extract<ServerChange, { operation: 'rebuild' }>, 'id' | 'from'>;
  /** Given, or made because there is no SSH key; shown once. */
  rootPassword: string | null;
}

/** @throws ApiError unknown_os or unknown_ssh_key */
export async function planRebuild(tx: Transaction, server: Server, asked: Operation): Promise<Rebuild> {
  const [found] = await tx.query<{ imageOffered: boolean; keys: { id: string; publicKey: string }[] }>(FACTS, [
    server.accountId,
    asked.os ?? null,
    asked.sshKeyIds ?? [],
  ]);
  const { imageOffered, keys } = found!;
  if (!imageOffered) throw new ApiError('unknown_os');
  if (keys.length < (asked.sshKeyIds?.length ?? 0)) throw new ApiError('unknown_ssh_key');
  const [sshKeyIds, sshPublicKeys] = asked.sshKeyIds
    ? [keys.map(({ id }) => id), keys.map(({ publicKey }) => publicKey)]
    : [server.sshKeyIds, server.sshPublicKeys];
  const { os, userData } = { os: asked.os ?? server.os, userData: asked.userData ?? server.userData };
  return {
    change: { operation: 'rebuild', os, sshKeyIds, sshPublicKeys, userData },
    rootPassword: asked.rootPassword ?? (sshPublicKeys.length ? null : newMachinePassword()),
  };
}
// The image that a server has already may be rebuilt also when it is not offered any more.
const FACTS = `
  select
    $2::text is null or exists (select from catalog_item where code = $2 and kind = 'image' and offered) as image_offered,
    (select coalesce(json_agg(json_build_object('id', id, 'publicKey', public_key) order by id), '[]')
      from ssh_key where account_id = $1 and id = any($3::text[])) as keys`;
