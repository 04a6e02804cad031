/** SSH public keys of an account. The service never sees the private keys. */
import { entity, int, key, now, type RowOf, text } from '../database/table.ts';

export const SshKey = entity(
  'ssh_key',
  {
    id: key(),
    accountId: text(),
    name: text(),
    /** Canonical `type base64`, without comment. */
    publicKey: text(),
    type: text(),
    bits: int(),
    /** `SHA256:` and base64 without padding, as ssh-keygen prints it. */
    fingerprint: text(),
    createdAt: now(),
  },
  [
    { name: 'ssh_key_account', columns: ['accountId', 'id'] },
    { name: 'ssh_key_fingerprint', columns: ['accountId', 'fingerprint'], unique: true },
  ],
);
export type SshKey = RowOf<typeof SshKey>;
