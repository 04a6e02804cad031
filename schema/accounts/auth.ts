/** Registration, login, and the password. */
import { changePassword } from '../../resolvers/accounts/auth/change-password.ts';
import { type LoginResult, login, loginTotp } from '../../resolvers/accounts/auth/login.ts';
import { register } from '../../resolvers/accounts/auth/register.ts';
import type { LoggedIn } from '../../resolvers/accounts/auth/session.ts';
import { builder } from '../builder.ts';
import { AccountType } from './account.ts';
import { TokenPairType } from './sessions.ts';

const Registration = builder.objectRef<LoggedIn>('Registration').implement({
  description: 'A new account, logged in.',
  fields: (t) => ({
    account: t.expose('account', { type: AccountType }),
    tokens: t.expose('tokens', { type: TokenPairType }),
  }),
});

const AuthResult = builder.objectRef<LoginResult>('AuthResult').implement({
  description: 'What a login leads to: tokens, or the question for a second factor.',
  fields: (t) => ({
    totpRequired: t.boolean({
      description: 'Whether a second factor must follow.',
      resolve: (result) => 'loginToken' in result,
    }),
    loginToken: t.string({
      nullable: true,
      description: 'Names the pending login; five wrong codes end it.',
      resolve: (result) => ('loginToken' in result ? result.loginToken : null),
    }),
    expiresIn: t.int({
      nullable: true,
      description: 'Seconds until the pending login is over.',
      resolve: (result) => ('expiresIn' in result ? result.expiresIn : null),
    }),
    account: t.field({
      type: AccountType,
      nullable: true,
      resolve: (result) => ('account' in result ? result.account : null),
    }),
    tokens: t.field({
      type: TokenPairType,
      nullable: true,
      resolve: (result) => ('tokens' in result ? result.tokens : null),
    }),
  }),
});

const PasswordChanged = builder.objectRef<number>('PasswordChanged').implement({
  description: 'The password was changed.',
  fields: (t) => ({
    changed: t.boolean({ description: 'Always true.', resolve: () => true }),
    sessionsRevoked: t.int({ description: 'How many other sessions ended.', resolve: (ended) => ended }),
  }),
});

const RegisterInput = builder.inputType('RegisterInput', {
  fields: (t) => ({
    email: t.field({
      type: 'Email',
      required: true,
      description: 'Names the account at login. No mail is sent to it.',
    }),
    password: t.field({ type: 'Password', required: true, description: '8 to 128 characters.' }),
  }),
});
const LoginInput = builder.inputType('LoginInput', {
  fields: (t) => ({
    email: t.field({ type: 'Email', required: true }),
    password: t.field({ type: 'CurrentPassword', required: true }),
    totpCode: t.field({
      type: 'TotpCode',
      description: 'The second factor, if the account has one and it is at hand; otherwise it is asked for.',
    }),
  }),
});
const LoginTotpInput = builder.inputType('LoginTotpInput', {
  fields: (t) => ({
    loginToken: t.field({ type: 'Token', required: true, description: 'The login_token of the pending login.' }),
    totpCode: t.field({ type: 'TotpCode', required: true }),
  }),
});
const ChangePasswordInput = builder.inputType('ChangePasswordInput', {
  fields: (t) => ({
    currentPassword: t.field({ type: 'CurrentPassword', required: true }),
    newPassword: t.field({ type: 'Password', required: true, description: '8 to 128 characters.' }),
    totpCode: t.field({ type: 'TotpCode', description: 'Needed if the account has a second factor.' }),
  }),
});

builder.mutationFields((t) => ({
  register: t.field({
    type: Registration,
    scope: 'public',
    description: 'Makes an account and logs it in.',
    args: { input: t.arg({ type: RegisterInput, required: true }) },
    resolve: (_, { input }, context) => register(context, input),
  }),
  login: t.field({
    type: AuthResult,
    scope: 'public',
    description: 'Exchanges an email and a password for tokens, or for a login that waits for the second factor.',
    args: { input: t.arg({ type: LoginInput, required: true }) },
    resolve: (_, { input }, context) => login(context, input),
  }),
  loginTotp: t.field({
    type: AuthResult,
    scope: 'public',
    description: 'Completes a pending login with its second factor.',
    args: { input: t.arg({ type: LoginTotpInput, required: true }) },
    resolve: (_, { input }, context) => loginTotp(context, input),
  }),
  changePassword: t.field({
    type: PasswordChanged,
    scope: 'full',
    description: 'Changes the password. All other sessions end; API keys stay.',
    args: { input: t.arg({ type: ChangePasswordInput, required: true }) },
    resolve: (_, { input }, context) => changePassword(context, input),
  }),
}));
