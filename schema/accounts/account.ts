/** The account and its balance. */
import DataLoader from 'dataloader';
import type { Account, BalanceView } from '../../entities/accounts/account.ts';
import {
  findAccount,
  findBalance,
  resumeAccount,
  SUSPENDED_SERVERS,
  suspendAccount,
} from '../../resolvers/accounts/account.ts';
import { type PasswordReset, resetPassword, resetSecondFactor } from '../../resolvers/accounts/auth/reset.ts';
import { countOpenCases } from '../../resolvers/accounts/cases.ts';
import { type ClosedAccount, closeAccount } from '../../resolvers/accounts/closed-account.ts';
import { findAccounts } from '../../resolvers/accounts/find.ts';
import { setAccountLimits } from '../../resolvers/accounts/limits.ts';
import type { Context } from '../../resolvers/context.ts';
import { watchBalance } from '../../resolvers/subscriptions.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { AccountLimitsType, OwnLimitsType, SetAccountLimitsInput } from './limits.ts';

const AccountKind = enumType('AccountKind', 'The kind of holder: a person, or an agent that registered itself.', [
  'PERSON',
  'AGENT',
]);

export const AccountType = objectType<Account>(
  'Account',
  'An account. It holds at most an email, and no name.',
  (t) => ({
    id: t.exposeID('id', { description: 'The id of the account.' }),
    kind: t.expose('kind', { type: AccountKind, description: 'agent: it came by an OAuth registration alone.' }),
    email: t.exposeString('email', { nullable: true, description: 'Null for agents.' }),
    totpEnabled: t.exposeBoolean('totpEnabled', { description: 'Whether logins need a second factor.' }),
    pgpFingerprint: t.exposeString('pgpFingerprint', {
      nullable: true,
      description: 'The key that recovers the account.',
    }),
    lowBalanceAlertDays: t.exposeInt('lowBalanceAlertDays', {
      description: 'The service sends balance.low when the balance covers fewer days of renewals.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    suspendedAt: t.expose('suspendedAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'When the suspension began. A suspended account may only read, end its own things, and change its password.',
    }),
    suspendedFor: t.exposeString('suspendedFor', { nullable: true, description: 'The reason of the suspension.' }),
    serversOff: t.exposeBoolean('serversOff', {
      description: 'Whether its servers are off until the suspension ends.',
    }),
    openCases: t.int({
      description: 'The number of complaints about its servers that wait for their end.',
      resolve: ({ id }, _, context) => loadOpenCases(context, id),
    }),
    limits: t.field({
      type: AccountLimitsType,
      description: 'The most that the account may have of each thing.',
      resolve: ({ limits }, _, context) => ({ ...context.limits, ...limits }),
    }),
    ownLimits: t.field({
      type: OwnLimitsType,
      description: 'The limits that the operator has set for this account. Null: that of the configuration.',
      resolve: ({ limits }) => limits,
    }),
  }),
);

/** Counts the open cases of an account, in one query with the others of a list. */
function loadOpenCases(context: Context, id: string): Promise<number> {
  const loader = loaders.get(context) ?? new DataLoader((ids) => countOpenCases(context, ids), { cache: false });
  loaders.set(context, loader);
  return loader.load(id);
}
const loaders = new WeakMap<Context, DataLoader<string, number>>();

export const BalanceType = objectType<BalanceView>('Balance', 'The balance of the account.', (t) => ({
  balanceUsd: t.expose('availableMicros', { type: 'Usd', description: 'The amount that the account can spend now.' }),
  pendingUsd: t.expose('pendingMicros', {
    type: 'Usd',
    description:
      'Payments of top-ups that wait for confirmation, at the rate of their quote. It includes refunds that wait until the payments behind them are final. Also the money of deleted dedicated servers that still have their hosts.',
  }),
  owedUsd: t.field({
    type: 'Usd',
    nullable: true,
    description:
      'The debt of payments that their chain removed. Later credits pay it first, and orders and renewals wait. Absent without a debt.',
    resolve: ({ owedMicros }) => owedMicros || null,
  }),
  currency: t.string({ description: 'Always USD.', resolve: () => 'USD' }),
  monthlyCostUsd: t.expose('monthlyCostMicros', {
    type: 'Usd',
    description: 'The price of the next renewals of the servers that renew automatically.',
  }),
  fundedUntil: t.expose('fundedUntil', {
    type: 'DateTime',
    nullable: true,
    description: 'When the balance no longer covers the renewals; null without renewals.',
  }),
  updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
}));

const SuspendedServers = enumType(
  'SuspendedServers',
  'The servers of a suspended account. Run: until their paid time ends. Off: at once, until the suspension ends.',
  SUSPENDED_SERVERS,
);

const PasswordResetType = objectType<PasswordReset>('PasswordReset', 'A new password of an account.', (t) => ({
  password: t.exposeString('password', { description: 'This answer alone shows it.' }),
  sessionsRevoked: t.exposeInt('sessionsRevoked'),
}));

const ClosedAccountType = objectType<ClosedAccount>(
  'ClosedAccount',
  'A closed account, with the numbers of deleted and ended things.',
  (t) => ({
    account: t.expose('account', { type: AccountType }),
    serversDeleted: t.exposeInt('serversDeleted'),
    refundedUsd: t.expose('refundedMicros', { type: 'Usd' }),
    sessionsRevoked: t.int({ resolve: ({ revoked }) => revoked.sessionsRevoked }),
    apiKeysRevoked: t.int({ resolve: ({ revoked }) => revoked.apiKeysRevoked }),
  }),
);

builder.queryFields((t) => ({
  accounts: t.field({
    type: [AccountType],
    scope: 'operator',
    description: 'The accounts that fit a search, at most 50: exact hits first, and newer ones before older ones.',
    args: {
      search: t.arg({
        type: 'Line',
        description:
          'An email or its beginning, an id, an order number, a host name, or the address of a server. Also a domain such as @example.org, a transaction, or an address of a payment. An email needs its first 3 characters, and an API key its first 13. Default: all accounts.',
      }),
      at: t.arg({ type: 'DateTime', description: 'Of an address: when a server had it. Default: now.' }),
    },
    resolve: (_, { search, at }, context) => findAccounts(context, search ?? null, at ?? null),
  }),
  account: t.field({
    type: AccountType,
    scope: 'read',
    description: 'The account of the caller.',
    resolve: (_, __, context) => findAccount(context),
  }),
  balance: t.field({
    type: BalanceType,
    scope: 'read',
    description: 'The balance of the account.',
    resolve: (_, __, context) => findBalance(context),
  }),
}));

builder.mutationFields((t) => ({
  setAccountLimits: t.field({
    type: AccountType,
    scope: 'operator',
    right: 'support',
    description: 'Sets the limits of one account, all at once. An absent one is that of the configuration.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The id of an account.' }),
      input: t.arg({ type: SetAccountLimitsInput, required: true }),
      seen: t.arg({
        type: SetAccountLimitsInput,
        description: 'The own limits that you saw. The service refuses the change of other ones.',
      }),
    },
    resolve: (_, { id, input, seen }, context) => setAccountLimits(context, id, input, seen),
  }),
  suspendAccount: t.field({
    type: AccountType,
    scope: 'operator',
    right: 'support',
    description:
      'Suspends an account at once. It may still read, delete, revoke, cancel and change its password. Its servers do not renew.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The account.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, which the customer can read.' }),
      servers: t.arg({
        type: SuspendedServers,
        required: true,
        defaultValue: 'RUN',
        description: 'Whether they run on. A suspended account can lose them later by a second call.',
      }),
    },
    resolve: (_, { id, reason, servers }, context) => suspendAccount(context, id, reason, servers),
  }),
  resumeAccount: t.field({
    type: AccountType,
    scope: 'operator',
    right: 'support',
    description: 'Ends the suspension of an account, and turns the servers on that it turned off.',
    args: { id: t.arg({ type: 'ID', required: true, description: 'The account.' }) },
    resolve: (_, { id }, context) => resumeAccount(context, id),
  }),
  closeAccount: t.field({
    type: ClosedAccountType,
    scope: 'operator',
    right: 'support',
    description:
      'Suspends an account, ends its credentials, and deletes its servers. Its balance stays, and its owner may log in to read.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The account.' }),
      refund: t.arg.boolean({
        required: true,
        description: 'Whether the balance gets the unused hours of its servers.',
      }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, which the customer can read.' }),
    },
    resolve: (_, { id, ...terms }, context) => closeAccount(context, id, terms),
  }),
  resetPassword: t.field({
    type: PasswordResetType,
    scope: 'operator',
    right: 'owner',
    description:
      'Gives an account a new password, and ends all its sessions. An account without a password is refused.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The account.' }),
      proof: t.arg({ type: 'Line', required: true, description: 'The evidence of the owner, which stays as a note.' }),
    },
    resolve: (_, { id, proof }, context) => resetPassword(context, id, proof),
  }),
  resetSecondFactor: t.field({
    type: AccountType,
    scope: 'operator',
    right: 'owner',
    description: 'Turns the second factor of an account off, and ends all its sessions.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The account.' }),
      proof: t.arg({ type: 'Line', required: true, description: 'The evidence of the owner, which stays as a note.' }),
    },
    resolve: (_, { id, proof }, context) => resetSecondFactor(context, id, proof),
  }),
}));

builder.subscriptionFields((t) => ({
  balanceChanged: t.field({
    type: BalanceType,
    scope: 'read',
    description: 'The balance now, and after each change.',
    subscribe: (_, __, context) => watchBalance(context),
    resolve: (balance: BalanceView) => balance,
  }),
}));
