/** The limits of an account. */
import type { AccountLimits } from '../../entities/accounts/limits.ts';
import { inputType, objectType } from '../builder.ts';

const ABOUT = {
  apiKeys: 'Active API keys.',
  servers: 'Servers.',
  sshKeys: 'SSH keys.',
  webhooks: 'Webhooks.',
  agentEntries: 'Entries in the directory of agents.',
  agentChangesPerHour: 'Changes of these entries in an hour.',
  pendingTopups: 'Top-ups that wait for a payment.',
  unpaidTopupsPerDay: 'Top-ups that got less than 1 USD, in 24 hours.',
  openPayments: 'Open payments by x402.',
  sessions: 'Sessions, at least 1.',
  oauthClients: 'OAuth clients.',
} as const satisfies Record<keyof AccountLimits, string>;
const NAMES = Object.keys(ABOUT) as (keyof AccountLimits)[];

/** Makes a field for each limit. */
const each = <Field>(make: (name: keyof AccountLimits, description: string) => Field) =>
  Object.fromEntries(NAMES.map((name) => [name, make(name, ABOUT[name])])) as Record<keyof AccountLimits, Field>;

export const AccountLimitsType = objectType<AccountLimits>(
  'AccountLimits',
  'The most that the account may have of each thing.',
  (t) => each((name, description) => t.exposeInt(name, { description })),
);
export const SetAccountLimitsInput = inputType('SetAccountLimitsInput', (t) =>
  each((_, description) => t.field({ type: 'AccountLimit', description })),
);
export const OwnLimitsType = objectType<Partial<AccountLimits>>(
  'OwnLimits',
  'The limits of one account. Null: that of the configuration.',
  (t) => each((name, description) => t.int({ nullable: true, description, resolve: (limits) => limits[name] ?? null })),
);
