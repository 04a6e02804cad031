/** The limits of an account. */
import type { AccountLimits } from '../../entities/accounts/limits.ts';
import { inputType, objectType } from '../builder.ts';

export const AccountLimitsType = objectType<AccountLimits>(
  'AccountLimits',
  'The most that the account may have of each thing.',
  (t) => ({
    apiKeys: t.exposeInt('apiKeys', { description: 'Active API keys.' }),
    servers: t.exposeInt('servers', { description: 'Servers.' }),
    sshKeys: t.exposeInt('sshKeys', { description: 'SSH keys.' }),
    webhooks: t.exposeInt('webhooks', { description: 'Webhooks.' }),
    agentEntries: t.exposeInt('agentEntries', { description: 'Entries in the directory of agents.' }),
    agentChangesPerHour: t.exposeInt('agentChangesPerHour', { description: 'Changes of these entries in an hour.' }),
    pendingTopups: t.exposeInt('pendingTopups', { description: 'Top-ups that wait for a payment.' }),
    unpaidTopupsPerDay: t.exposeInt('unpaidTopupsPerDay', {
      description: 'Top-ups that got less than 1 USD, in 24 hours.',
    }),
    openPayments: t.exposeInt('openPayments', { description: 'Open payments by x402.' }),
    sessions: t.exposeInt('sessions', { description: 'Sessions.' }),
    oauthClients: t.exposeInt('oauthClients', { description: 'OAuth clients.' }),
  }),
);

const LIMIT = { type: 'AccountLimit' } as const;
export const SetAccountLimitsInput = inputType('SetAccountLimitsInput', (t) => ({
  apiKeys: t.field({ ...LIMIT, description: 'Active API keys.' }),
  servers: t.field({ ...LIMIT, description: 'Servers.' }),
  sshKeys: t.field({ ...LIMIT, description: 'SSH keys.' }),
  webhooks: t.field({ ...LIMIT, description: 'Webhooks.' }),
  agentEntries: t.field({ ...LIMIT, description: 'Entries in the directory of agents.' }),
  agentChangesPerHour: t.field({ ...LIMIT, description: 'Changes of these entries in an hour.' }),
  pendingTopups: t.field({ ...LIMIT, description: 'Top-ups that wait for a payment.' }),
  unpaidTopupsPerDay: t.field({ ...LIMIT, description: 'Top-ups that got less than 1 USD, in 24 hours.' }),
  openPayments: t.field({ ...LIMIT, description: 'Open payments by x402.' }),
  sessions: t.field({ ...LIMIT, description: 'Sessions, at least 1.' }),
  oauthClients: t.field({ ...LIMIT, description: 'OAuth clients.' }),
}));
export const OwnLimitsType = objectType<Partial<AccountLimits>>(
  'OwnLimits',
  'The limits of one account. Null: that of the configuration.',
  (t) => {
    const own = (name: keyof AccountLimits) => t.int({ nullable: true, resolve: (limits) => limits[name] ?? null });
    return {
      ...{ apiKeys: own('apiKeys'), servers: own('servers'), sshKeys: own('sshKeys'), webhooks: own('webhooks') },
      ...{ agentEntries: own('agentEntries'), agentChangesPerHour: own('agentChangesPerHour') },
      ...{ pendingTopups: own('pendingTopups'), unpaidTopupsPerDay: own('unpaidTopupsPerDay') },
      ...{ openPayments: own('openPayments'), sessions: own('sessions'), oauthClients: own('oauthClients') },
    };
  },
);
