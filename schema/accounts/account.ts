/** The account and its balance. */
import type { Account } from '../../entities/accounts/account.ts';
import {
  type BalanceView,
  findAccount,
  findBalance,
  fundedUntil,
  resumeAccount,
  suspendAccount,
} from '../../resolvers/accounts/account.ts';
import type { AccountLimits } from '../../resolvers/context.ts';
import { watchBalance } from '../../resolvers/subscriptions.ts';
import { builder } from '../builder.ts';

const AccountKind = builder.enumType('AccountKind', {
  description: 'Who registered.',
  values: ['PERSON', 'AGENT'] as const,
});

const AccountLimitsType = builder.objectRef<AccountLimits>('AccountLimits').implement({
  description: 'How many of each thing the account may have.',
  fields: (t) => ({
    apiKeys: t.exposeInt('apiKeys'),
    servers: t.exposeInt('servers'),
    sshKeys: t.exposeInt('sshKeys'),
    webhooks: t.exposeInt('webhooks'),
    agentEntries: t.exposeInt('agentEntries'),
    pendingTopups: t.exposeInt('pendingTopups'),
    sessions: t.exposeInt('sessions'),
    oauthClients: t.exposeInt('oauthClients'),
  }),
});

export const AccountType = builder.objectRef<Account>('Account').implement({
  description: 'An account. It knows an email at most, and no name.',
  fields: (t) => ({
    id: t.exposeID('id'),
    kind: t.expose('kind', { type: AccountKind }),
    email: t.exposeString('email', { nullable: true, description: 'Null for agents.' }),
    totpEnabled: t.exposeBoolean('totpEnabled', { description: 'Whether logins need a second factor.' }),
    pgpFingerprint: t.exposeString('pgpFingerprint', { nullable: true }),
    lowBalanceAlertDays: t.exposeInt('lowBalanceAlertDays', {
      description: 'How many days ahead renewals must be covered before balance.low is sent.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    suspendedAt: t.expose('suspendedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'Since when it may only read and end things.',
    }),
    suspendedFor: t.exposeString('suspendedFor', { nullable: true, description: 'Why, in words for the customer.' }),
    limits: t.field({ type: AccountLimitsType, resolve: (_, __, { limits }) => limits }),
  }),
});

const BalanceType = builder.objectRef<BalanceView>('Balance').implement({
  description: 'What the account can spend.',
  fields: (t) => ({
    balanceUsd: t.expose('availableMicros', { type: 'Usd', description: 'What can be spent now.' }),
    pendingUsd: t.expose('pendingMicros', {
      type: 'Usd',
      description: 'Top-ups that were seen and are not yet confirmed.',
    }),
    currency: t.string({ description: 'Always USD.', resolve: () => 'USD' }),
    monthlyCostUsd: t.expose('monthlyCostMicros', {
      type: 'Usd',
      description: 'What the servers that renew themselves cost in a month.',
    }),
    fundedUntil: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'Until when the balance pays for them.',
      resolve: fundedUntil,
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
});

builder.queryFields((t) => ({
  account: t.field({
    type: AccountType,
    scope: 'read',
    description: 'The account of the caller.',
    resolve: (_, __, context) => findAccount(context),
  }),
  balance: t.field({
    type: BalanceType,
    scope: 'read',
    description: 'What the account can spend.',
    resolve: (_, __, context) => findBalance(context),
  }),
}));

builder.mutationFields((t) => ({
  suspendAccount: t.field({
    type: AccountType,
    scope: 'operator',
    description:
      'Suspends an account at once: it may read, delete, revoke and cancel, and nothing else. Its servers run on.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The account.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'Shown to the customer.' }),
    },
    resolve: (_, { id, reason }, context) => suspendAccount(context, id, reason),
  }),
  resumeAccount: t.field({
    type: AccountType,
    scope: 'operator',
    description: 'Ends the suspension of an account.',
    args: { id: t.arg({ type: 'ID', required: true, description: 'The account.' }) },
    resolve: (_, { id }, context) => resumeAccount(context, id),
  }),
}));

builder.subscriptionFields((t) => ({
  balanceChanged: t.field({
    type: BalanceType,
    scope: 'read',
    description: 'The balance, now and after each change.',
    subscribe: (_, __, context) => watchBalance(context),
    resolve: (balance: BalanceView) => balance,
  }),
}));
