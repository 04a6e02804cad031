/** Plans a rebuild: with the requested image and keys, or else with those of the server. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { newMachinePassword } from '../../entities/secrets.ts';
import { READ_REBUILD_FACTS } from '../../entities/servers/order.ts';
import type { Server, ServerChange } from '../../entities/servers/server.ts';
import { unknownItem, unknownSshKey } from '../unknown.ts';
import type { Operation } from './operation.ts';

export interface Rebuild {
  change: Omit<Extract<ServerChange, { operation: 'rebuild' }>, 'id' | 'from'>;
  /** The given password, or a generated one without SSH keys. */
  rootPassword: string | null;
  /** The service has forgotten that of the order. */
  userData: string | null;
}

/** @throws ApiError unknown_os or unknown_ssh_key */
export async function planRebuild(tx: Transaction, server: Server, asked: Operation): Promise<Rebuild> {
  const { accountId, orderNumber, os } = server;
  const facts = await READ_REBUILD_FACTS.first(tx, [accountId, asked.os ?? null, asked.sshKeyIds ?? [], orderNumber]);
  const { imageOffered, hasImage, keys } = facts!;
  if (!imageOffered) throw await unknownItem(tx, 'unknown_os', asked.os!);
  if (!hasImage)
    throw new ApiError('unknown_os', `The engine of this server has no image ${asked.os ?? os}. Choose another one.`);
  if (keys.length < (asked.sshKeyIds?.length ?? 0)) throw await unknownSshKey(tx, accountId, asked.sshKeyIds!);
  const [sshKeyIds, sshPublicKeys] = asked.sshKeyIds
    ? [keys.map(({ id }) => id), keys.map(({ publicKey }) => publicKey)]
    : [server.sshKeyIds, server.sshPublicKeys];
  return {
    change: {
      operation: 'rebuild',
      os: asked.os ?? server.os,
      sshKeyIds,
      sshPublicKeys,
    },
    userData: asked.userData ?? null,
    rootPassword: asked.rootPassword ?? (sshPublicKeys.length ? null : newMachinePassword()),
  };
}
