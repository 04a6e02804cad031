/** Two-factor authentication. */
import {
  disableTotp,
  enableTotp,
  renewRecoveryCodes,
  setupTotp,
  type TotpSetup,
} from '../../resolvers/accounts/auth/totp.ts';
import { builder, inputType, objectType } from '../builder.ts';

const TotpSetupType = objectType<TotpSetup>(
  'TotpSetup',
  'A seed that waits for a first code. The service shows it once.',
  (t) => ({
    provisioningUri: t.exposeString('provisioningUri', {
      description: 'The URI for an authenticator, best as a QR code.',
    }),
    secret: t.exposeString('secret', { description: 'The seed, in base32.' }),
    algorithm: t.string({ description: 'Always SHA1.', resolve: () => 'SHA1' }),
    digits: t.int({ description: 'The number of digits of a code.', resolve: () => 6 }),
    period: t.int({ description: 'Seconds for which a code is valid.', resolve: () => 30 }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the setup expires.' }),
  }),
);

const TotpEnabled = objectType<string[]>('TotpEnabled', 'The result of turning two-factor authentication on.', (t) => ({
  totpEnabled: t.boolean({ description: 'Always true.', resolve: () => true }),
  recoveryCodes: t.stringList({
    description: 'Ten codes, each valid once in place of a code. The service shows them once.',
    resolve: (codes) => codes,
  }),
}));

export const RecoveryCodes = objectType<string[]>(
  'RecoveryCodes',
  'New recovery codes. The old ones no longer work.',
  (t) => ({
    recoveryCodes: t.stringList({
      description: 'Ten codes, each valid once in place of a code. The service shows them once.',
      resolve: (codes) => codes,
    }),
  }),
);

const TotpDisabled = objectType<object>(
  'TotpDisabled',
  'The result of turning two-factor authentication off.',
  (t) => ({ totpEnabled: t.boolean({ description: 'Always false.', resolve: () => false }) }),
);

const SetupTotpInput = inputType('SetupTotpInput', (t) => ({
  password: t.field({ type: 'CurrentPassword', required: true }),
}));
const EnableTotpInput = inputType('EnableTotpInput', (t) => ({
  totpCode: t.field({ type: 'TotpCode', required: true, description: 'A code of the authenticator.' }),
}));
const NewRecoveryCodesInput = inputType('NewRecoveryCodesInput', (t) => ({
  totpCode: t.field({ type: 'TotpCode', required: true }),
}));
const DisableTotpInput = inputType('DisableTotpInput', (t) => ({
  totpCode: t.field({ type: 'TotpCode', required: true }),
}));

builder.mutationFields((t) => ({
  setupTotp: t.field({
    type: TotpSetupType,
    scope: 'full',
    errors: ['wrong_password', 'totp_already_enabled', 'login_throttled'],
    description: 'Begins the setup of two-factor authentication. Logins need no code until enable_totp confirms it.',
    args: { input: t.arg({ type: SetupTotpInput, required: true }) },
    resolve: (_, { input }, context) => setupTotp(context, input.password),
  }),
  enableTotp: t.field({
    type: TotpEnabled,
    scope: 'full',
    errors: ['totp_already_enabled', 'totp_setup_missing', 'invalid_totp', 'login_throttled'],
    description: 'Turns two-factor authentication on with a first code. All other sessions end; API keys stay.',
    args: { input: t.arg({ type: EnableTotpInput, required: true }) },
    resolve: (_, { input }, context) => enableTotp(context, input.totpCode),
  }),
  newRecoveryCodes: t.field({
    type: RecoveryCodes,
    scope: 'full',
    errors: ['totp_not_enabled', 'invalid_totp', 'login_throttled'],
    description: 'Replaces the recovery codes by ten new ones.',
    args: { input: t.arg({ type: NewRecoveryCodesInput, required: true }) },
    resolve: (_, { input }, context) => renewRecoveryCodes(context, input.totpCode),
  }),
  disableTotp: t.field({
    type: TotpDisabled,
    scope: 'full',
    errors: ['totp_not_enabled', 'invalid_totp', 'login_throttled'],
    description: 'Turns two-factor authentication off. All other sessions end; API keys stay.',
    args: { input: t.arg({ type: DisableTotpInput, required: true }) },
    resolve: async (_, { input }, context) => {
      await disableTotp(context, input.totpCode);
      return {};
    },
  }),
}));
