/** Announced operations that are not available yet. The facades refuse them after credential and scope, and so does the schema. */
import { ApiError } from '../entities/errors.ts';
import { AccountType } from './accounts/account.ts';
import { builder, inputType } from './builder.ts';

const RecoverInput = inputType('RecoverInput', (t) => ({
  email: t.field({ type: 'Email', description: 'First step: the email of the account.' }),
  challengeId: t.field({ type: 'Line', description: 'Second step: the challenge.' }),
  challengeResponse: t.field({ type: 'Line', description: 'Second step: the decrypted challenge.' }),
  newPassword: t.field({ type: 'Password', description: 'Second step: the new password.' }),
}));
const Recovery = builder
  .objectRef<{ challengeId: string; encryptedChallenge: string; expiresIn: number }>('Recovery')
  .implement({
    description: 'A challenge that only the PGP key of the account can read.',
    fields: (t) => ({
      challengeId: t.exposeID('challengeId'),
      encryptedChallenge: t.exposeString('encryptedChallenge'),
      expiresIn: t.exposeInt('expiresIn', { description: 'Seconds.' }),
    }),
  });
const UpdateAccountInput = inputType('UpdateAccountInput', (t) => ({
  email: t.field({ type: 'Email' }),
  pgpPublicKey: t.field({ type: 'Prose', description: 'Armored; must be able to encrypt.' }),
  lowBalanceAlertDays: t.field({ type: 'AlertDays', description: 'How many days ahead renewals must be covered.' }),
  currentPassword: t.field({ type: 'Password', description: 'Needed for the email and the key.' }),
}));

/** @throws ApiError endpoint_planned */
function planned(): never {
  throw new ApiError('endpoint_planned');
}

builder.mutationFields((t) => ({
  recover: t.field({
    type: Recovery,
    scope: 'public',
    description: 'Planned: recovers an account with its PGP key.',
    args: { input: t.arg({ type: RecoverInput, required: true }) },
    resolve: planned,
  }),
  updateAccount: t.field({
    type: AccountType,
    scope: 'full',
    description: 'Planned: changes the account.',
    args: { input: t.arg({ type: UpdateAccountInput, required: true }) },
    resolve: planned,
  }),
}));
