/** SSH public keys of an account. The service never sees the private keys. */
import * as column from '../database/column.ts';
import { entity, type RowOf } from '../database/table.ts';

export const SshKey = entity('ssh_key', {
  id: column.key(),
  accountId: column.text(),
  name: column.text(),
  /** Canonical `type base64`, without comment. */
  publicKey: column.text(),
  type: column.text(),
  bits: column.int(),
  /** `SHA256:` and base64 without padding, as ssh-keygen prints it. */
  fingerprint: column.text(),
  createdAt: column.now(),
});
export type SshKey = RowOf<typeof SshKey>;
