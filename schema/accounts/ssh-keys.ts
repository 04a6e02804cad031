/** SSH public keys. */
import type { SshKey } from '../../entities/accounts/ssh-key.ts';
import { addSshKey, deleteSshKey, findSshKey, listSshKeys } from '../../resolvers/accounts/ssh-keys.ts';
import { builder, inputType, objectType, STEP_UP } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const SshKeyType = objectType<SshKey>('SshKey', 'An SSH public key.', (t) => ({
  id: t.exposeID('id', { description: 'The id of the key.' }),
  name: t.exposeString('name', { description: 'The name that its owner chose.' }),
  publicKey: t.exposeString('publicKey', { description: 'Type and base64, without the comment.' }),
  type: t.exposeString('type', { description: 'The type, such as ssh-ed25519.' }),
  bits: t.exposeInt('bits', { description: 'The size of the key, in bits.' }),
  fingerprint: t.exposeString('fingerprint', { description: 'The fingerprint that ssh-keygen -l prints.' }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  expiresAt: t.expose('expiresAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When it leaves the account, with the credential that added it.',
  }),
}));
/** The answer to a deletion. */
export const Deleted = objectType<{ id: string; deleted: boolean }>('Deleted', 'A deleted thing.', (t) => ({
  id: t.exposeID('id', { description: 'The id of the deleted thing.' }),
  deleted: t.exposeBoolean('deleted', { description: 'Always true.' }),
}));
const SshKeyPage = pageOf('SshKey', SshKeyType);

const AddSshKeyInput = inputType('AddSshKeyInput', (t) => ({
  publicKey: t.field({
    type: 'PublicKey',
    required: true,
    description: 'The content of the .pub file, never the private key.',
  }),
  name: t.field({ type: 'KeyName', description: 'Default: the comment of the key.' }),
  totpCode: t.field({ type: 'TotpCode', description: STEP_UP }),
}));
const idArg = { type: 'ID', required: true, description: 'The id of the key.' } as const;

builder.queryFields((t) => ({
  sshKey: t.field({
    type: SshKeyType,
    scope: 'read',
    description: 'One SSH key.',
    args: { id: t.arg(idArg) },
    resolve: (_, { id }, context) => findSshKey(context, id),
  }),
  sshKeys: t.field({
    type: SshKeyPage,
    scope: 'read',
    description: 'The SSH keys of the account, newest first.',
    args: pageArgs(),
    resolve: (_, page, context) => listSshKeys(context, page),
  }),
}));

builder.mutationFields((t) => ({
  addSshKey: t.field({
    type: SshKeyType,
    scope: 'servers',
    errors: ['invalid_public_key', 'private_key_rejected', 'key_too_weak', 'ssh_key_limit_reached'],
    creates: 'ssh_key',
    description: 'Adds an SSH public key. Adding a known key again returns the same object.',
    args: { input: t.arg({ type: AddSshKeyInput, required: true }) },
    resolve: (_, { input }, context) => addSshKey(context, input),
  }),
  deleteSshKey: t.field({
    type: Deleted,
    scope: 'servers',
    whileSuspended: true,
    description: 'Deletes an SSH key. Existing servers keep it.',
    args: { id: t.arg(idArg) },
    resolve: (_, { id }, context) => deleteSshKey(context, id),
  }),
}));
