/** Registration, login, and the password. */
import { changePassword, type PasswordChanged } from '../../resolvers/accounts/auth/change-password.ts';
import { type AwaitsCode, login, loginTotp } from '../../resolvers/accounts/auth/login.ts';
import type { LoggedIn } from '../../resolvers/accounts/auth/session.ts';
import { type Registered, register } from '../../resolvers/accounts/register.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { AccountType } from './account.ts';
import { TokenPairType } from './sessions.ts';

const Registration = objectType<Registered>('Registration', 'A new account, and its first tokens.', (t) => ({
  account: t.expose('account', { type: AccountType }),
  tokens: t.expose('tokens', { type: TokenPairType }),
  recoveryCodes: t.exposeStringList('recoveryCodes', {
    nullable: true,
    description: 'Codes that replace a lost password, if you asked for them. The service shows them only here.',
  }),
}));

const AuthResult = objectType<Partial<LoggedIn & AwaitsCode>>(
  'AuthResult',
  'The result of a login: tokens, or a request for the second factor.',
  (t) => ({
    totpRequired: t.boolean({
      description: 'Whether the login waits for a second factor.',
      resolve: ({ loginToken }) => loginToken !== undefined,
    }),
    loginToken: t.exposeString('loginToken', {
      nullable: true,
      description: 'Identifies the pending login. Five wrong codes end it.',
    }),
    expiresIn: t.exposeInt('expiresIn', { nullable: true, description: 'Seconds until the pending login ends.' }),
    account: t.expose('account', { type: AccountType, nullable: true }),
    tokens: t.expose('tokens', { type: TokenPairType, nullable: true }),
  }),
);

const PasswordChangedType = objectType<PasswordChanged>(
  'PasswordChanged',
  'The result of a password change. The last three members exist only with revoke: everything.',
  (t) => ({
    changed: t.boolean({ description: 'Always true.', resolve: () => true }),
    sessionsRevoked: t.exposeInt('sessionsRevoked', { description: 'The number of other sessions that ended.' }),
    apiKeysRevoked: t.exposeInt('apiKeysRevoked', { nullable: true, description: 'The number of ended API keys.' }),
    oauthClientsDeleted: t.exposeInt('oauthClientsDeleted', {
      nullable: true,
      description: 'The number of deleted OAuth clients.',
    }),
    webhookSecretsReplaced: t.exposeInt('webhookSecretsReplaced', {
      nullable: true,
      description: 'The number of webhooks with a new secret.',
    }),
  }),
);

const Revocation = enumType('Revocation', 'The credentials that end with a password change.', [
  'SESSIONS',
  'EVERYTHING',
]);

const RegisterInput = inputType('RegisterInput', (t) => ({
  email: t.field({
    type: 'Email',
    required: true,
    description: 'For login.',
  }),
  password: t.field({ type: 'Password', required: true, description: '8 to 128 characters.' }),
  proofOfWork: t.field({
    type: 'ProofOfWork',
    description: 'After proof_of_work_required (SHA-256). Onion services always ask.',
  }),
  recoveryCodes: t.boolean({ description: 'True: answers codes that replace a lost password.' }),
}));
const LoginInput = inputType('LoginInput', (t) => ({
  email: t.field({ type: 'Email', required: true }),
  password: t.field({ type: 'CurrentPassword', required: true }),
  totpCode: t.field({
    type: 'TotpCode',
    description: 'The second factor. Without it, an account with two-factor authentication gets a login_token.',
  }),
}));
const LoginTotpInput = inputType('LoginTotpInput', (t) => ({
  loginToken: t.field({ type: 'Token', required: true, description: 'The login_token of the pending login.' }),
  totpCode: t.field({ type: 'TotpCode', required: true }),
}));
const ChangePasswordInput = inputType('ChangePasswordInput', (t) => ({
  currentPassword: t.field({ type: 'CurrentPassword', required: true }),
  newPassword: t.field({ type: 'Password', required: true, description: '8 to 128 characters.' }),
  totpCode: t.field({ type: 'TotpCode', description: 'Required if the account has two-factor authentication.' }),
  revoke: t.field({
    type: Revocation,
    required: true,
    defaultValue: 'SESSIONS',
    description: 'sessions: all other sessions. everything: also API keys, OAuth clients and webhook secrets, at once.',
  }),
}));

builder.mutationFields((t) => ({
  register: t.field({
    type: Registration,
    scope: 'public',
    errors: ['email_taken', 'weak_password', 'proof_of_work_required'],
    creates: 'tokens',
    description: 'Creates an account and logs it in.',
    args: { input: t.arg({ type: RegisterInput, required: true }) },
    resolve: (_, { input }, context) => register(context, input),
  }),
  login: t.field({
    type: AuthResult,
    scope: 'public',
    errors: ['invalid_login', 'invalid_totp', 'login_throttled'],
    creates: 'tokens',
    description: 'Exchanges an email and a password for tokens, or for a pending login that needs the second factor.',
    args: { input: t.arg({ type: LoginInput, required: true }) },
    resolve: (_, { input }, context) => login(context, input),
  }),
  loginTotp: t.field({
    type: AuthResult,
    scope: 'public',
    errors: ['invalid_totp', 'login_token_expired', 'login_throttled'],
    creates: 'tokens',
    description: 'Completes a pending login with its second factor.',
    args: { input: t.arg({ type: LoginTotpInput, required: true }) },
    resolve: (_, { input }, context) => loginTotp(context, input),
  }),
  changePassword: t.field({
    type: PasswordChangedType,
    scope: 'full',
    errors: ['wrong_password', 'weak_password', 'invalid_totp', 'login_throttled'],
    whileSuspended: true,
    description:
      'Changes the password. All other sessions end. API keys and OAuth clients stay, unless revoke says everything.',
    args: { input: t.arg({ type: ChangePasswordInput, required: true }) },
    resolve: (_, { input }, context) => changePassword(context, input),
  }),
}));
