/** Changes of an account, and its recovery. An installation serves both only with the features of its configuration. */

import type { TokenPair } from '../../resolvers/accounts/auth/session.ts';
import { type Recovered, recover } from '../../resolvers/accounts/recovery/recover.ts';
import { type AccountChanged, updateAccount } from '../../resolvers/accounts/update-account.ts';
import { builder, inputType, objectType } from '../builder.ts';
import { AccountType } from './account.ts';
import { TokenPairType } from './sessions.ts';

type Either = { challengeId?: string; encryptedChallenge?: string; expiresIn?: number; tokens?: TokenPair };

const RecoverInput = inputType('RecoverInput', (t) => ({
  email: t.field({ type: 'Email', description: 'The email of the account. Alone, it asks for a challenge.' }),
  challengeId: t.field({ type: 'Line', description: 'The challenge_id of the challenge that you answer.' }),
  challengeResponse: t.field({ type: 'Line', description: 'The decrypted challenge.' }),
  recoveryCode: t.field({
    type: 'Line',
    description: 'An unused recovery code, with the email in place of a challenge.',
  }),
  newPassword: t.field({ type: 'Password', description: 'The new password: 8 to 128 characters.' }),
  totpCode: t.field({
    type: 'TotpCode',
    description: 'With a recovery_code, if the account has two-factor authentication.',
  }),
}));
const RecoveryType = objectType<Either>(
  'Recovery',
  'A challenge that only the PGP key of the account can read, or tokens.',
  (t) => ({
    challengeId: t.exposeID('challengeId', { nullable: true, description: 'Send it with the answer.' }),
    encryptedChallenge: t.exposeString('encryptedChallenge', {
      nullable: true,
      description: 'An armored PGP message. Decrypt it: the text is the challenge_response.',
    }),
    expiresIn: t.exposeInt('expiresIn', { nullable: true, description: 'Seconds until the challenge ends.' }),
    tokens: t.expose('tokens', { type: TokenPairType, nullable: true, description: 'The tokens, at the end.' }),
  }),
);
const UpdateAccountInput = inputType('UpdateAccountInput', (t) => ({
  email: t.field({ type: 'Email', description: 'The new email, for login.' }),
  pgpPublicKey: t.field({
    type: 'PgpKey',
    description: 'An armored PGP key that can encrypt. It can recover the account. An empty text removes the key.',
  }),
  lowBalanceAlertDays: t.field({ type: 'AlertDays', description: 'How many days ahead renewals must be covered.' }),
  recoveryCodes: t.boolean({
    description: 'True: replaces the recovery codes by new ones, which the answer shows once.',
  }),
  currentPassword: t.field({
    type: 'CurrentPassword',
    description: 'Needed for the email, the key and the recovery codes.',
  }),
  totpCode: t.field({
    type: 'TotpCode',
    description: 'Needed for the same, if the account has two-factor authentication.',
  }),
}));
const UpdatedAccountType = objectType<AccountChanged>('UpdatedAccount', 'A changed account.', (t) => ({
  account: t.expose('account', { type: AccountType }),
  recoveryCodes: t.exposeStringList('recoveryCodes', {
    nullable: true,
    description: 'The new recovery codes. The service shows them only here.',
  }),
}));

builder.mutationFields((t) => ({
  recover: t.field({
    type: RecoveryType,
    scope: 'public',
    errors: ['invalid_login', 'invalid_totp', 'weak_password', 'login_throttled'],
    creates: 'tokens',
    description: 'Gives an account a new password, by its PGP key or a recovery code.',
    args: { input: t.arg({ type: RecoverInput, required: true }) },
    resolve: (_, { input }, context): Promise<Recovered> => recover(context, input),
  }),
  updateAccount: t.field({
    type: UpdatedAccountType,
    scope: 'full',
    errors: [
      'email_taken',
      'wrong_password',
      'invalid_totp',
      'login_throttled',
      'invalid_public_key',
      'private_key_rejected',
    ],
    description: 'Changes the account of the caller.',
    args: { input: t.arg({ type: UpdateAccountInput, required: true }) },
    resolve: (_, { input }, context) => updateAccount(context, input),
  }),
}));
