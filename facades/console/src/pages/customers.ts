/** The pages about customers and their servers. */
import type { graphql, Row } from '../api.ts';
import { usd } from '../values.ts';
import { payoutInWords } from './money.ts';
import { byId, is, not, type Page } from './page.ts';

/** Whether the operator should still read a message. */
const isUnread = (row: Row): boolean => row.from === 'CUSTOMER' && !row.readAt;

/** The recipients of a message. */
const TO = {
  title: 'To',
  words: { accountId: 'one account', region: 'all with a server in a region', all: 'all accounts' },
};
/** The number of accounts that a message to many reaches. */
async function recipients({ accountId, region, all }: Row, _: Row, ask: typeof graphql): Promise<string> {
  if (accountId || (!region && !all)) return '';
  const query = 'query ($region: Code) { messageRecipients(region: $region) }';
  const { messageRecipients } = await ask(query, { region });
  return `This writes to ${Number(messageRecipients).toLocaleString('en')} accounts.`;
}

const LIMITS = `apiKeys servers sshKeys webhooks agentEntries agentChangesPerHour pendingTopups unpaidTopupsPerDay
  openPayments sessions oauthClients`;
/** The form begins with the limits that the account has, because it sets all of them. */
const ownLimits = ({ ownLimits }: Row): Row =>
  Object.fromEntries(LIMITS.split(/\s+/).map((name) => [name, (ownLimits as Row)[name]]));

export const CUSTOMERS: readonly Page[] = [
  {
    ...{ path: 'servers', group: 'Customers', title: 'Servers', list: 'servers', key: 'orderNumber', one: 'server' },
    filters: ['status', 'region', 'hostname', 'labelSelector'],
    fields: `orderNumber accountId kind status hostname serviceCode region os ipv4 ipv6 priceMonthUsd paidUntil autoRenew
      deleteProtection trafficUsedGb failure { code message } createdAt updatedAt`,
    columns: [
      { field: 'status', title: 'State', as: 'state' },
      { field: 'hostname', title: 'Host name' },
      { field: 'orderNumber', title: 'Order', as: 'code', wide: true },
      { field: 'serviceCode', title: 'Tier', wide: true },
      { field: 'region', title: 'Region', wide: true },
      { field: 'ipv4', title: 'IPv4', as: 'code' },
      { field: 'priceMonthUsd', title: 'Month', as: 'number', wide: true },
      { field: 'paidUntil', title: 'Paid until', as: 'day', wide: true },
    ],
    rowActions: [
      {
        ...{ mutation: 'updateServer', label: 'Change' },
        of: ({ orderNumber }) => ({ orderNumber }),
        when: is('status', 'RUNNING', 'STOPPED', 'SUSPENDED'),
      },
      {
        ...{ mutation: 'openCase', label: 'Open a case', when: not('ipv4', null) },
        of: ({ ipv4 }) => ({ input: { address: ipv4 } }),
      },
      {
        ...{ mutation: 'removeServer', label: 'Delete', destroys: true },
        of: ({ orderNumber }) => ({ orderNumber }),
        when: not('status', 'DELETED', 'DELETING', 'FAILED'),
      },
    ],
    empty: 'No server yet. Customers order over REST or MCP, and their servers appear here at once.',
  },
  {
    ...{ path: 'accounts', group: 'Customers', title: 'Accounts', list: 'accounts', key: 'id', called: 'email' },
    filters: ['search', 'at'],
    fields: `id kind email totpEnabled createdAt suspendedAt suspendedFor serversOff openCases ownLimits {
      ${LIMITS} }`,
    details: {
      field: 'customer',
      fields: `balance { balanceUsd pendingUsd owedUsd monthlyCostUsd fundedUntil }
        notes { createdAt author text } cases { state address at deadline result }
        servers { orderNumber status hostname serviceCode region ipv4 paidUntil }
        payments { seenAt status coin creditedUsd } messages { createdAt from subject readAt }
        events { createdAt type subject data }`,
    },
    columns: [
      { field: 'email', title: 'Email' },
      { field: 'id', title: 'Account', as: 'code' },
      { field: 'createdAt', title: 'Since', as: 'day', wide: true },
      { field: 'suspendedAt', title: 'Suspended', as: 'day', wide: true },
      { field: 'openCases', title: 'Open cases', as: 'number' },
    ],
    rowActions: [
      {
        ...{ mutation: 'suspendAccount', label: 'Suspend', of: byId, when: is('suspendedAt', null), destroys: true },
        first: () => ({ servers: 'OFF' }),
      },
      {
        ...{ mutation: 'suspendAccount', label: 'Turn its servers off', destroys: true },
        of: ({ id }) => ({ id, servers: 'OFF' }),
        when: (row) => row.suspendedAt !== null && !row.serversOff,
      },
      { mutation: 'resumeAccount', label: 'End the suspension', of: byId, when: not('suspendedAt', null) },
      {
        ...{ mutation: 'sendMessage', label: 'Write a message', asks: recipients, choice: TO },
        of: ({ id }) => ({ input: { accountId: id } }),
      },
      {
        mutation: 'setAccountLimits',
        label: 'Set its limits',
        of: (row) => ({ id: row.id, input: ownLimits(row), seen: ownLimits(row) }),
      },
      { mutation: 'addNote', label: 'Add a note', of: ({ id }) => ({ accountId: id }) },
      {
        ...{ mutation: 'adjustBalance', label: 'Adjust the balance', of: ({ id }) => ({ accountId: id }) },
        asks: ({ amountUsd }, { email, id }) => {
          const amount = Number(amountUsd);
          return `This ${amount < 0 ? 'takes' : 'gives'} ${usd(Math.abs(amount))} ${amount < 0 ? 'from' : 'to'} ${email ?? id}.`;
        },
      },
      {
        ...{ mutation: 'requestPayout', label: 'Request a payout', of: ({ id }) => ({ accountId: id }) },
        asks: payoutInWords,
      },
      {
        ...{
          mutation: 'resetPassword',
          label: 'Give a new password',
          of: byId,
          destroys: true,
          when: not('email', null),
        },
        shows: 'password sessionsRevoked',
      },
      {
        ...{ mutation: 'resetSecondFactor', label: 'Turn the second factor off', of: byId, destroys: true },
        when: is('totpEnabled', true),
      },
      {
        ...{ mutation: 'closeAccount', label: 'Close', of: byId, destroys: true },
        tells: 'serversDeleted refundedUsd',
      },
      {
        ...{ mutation: 'revokeCredentials', label: 'End all credentials', of: byId, destroys: true },
        tells: 'sessionsRevoked apiKeysRevoked oauthClientsDeleted webhookSecretsReplaced',
      },
    ],
    empty:
      'No account fits. Search by an email or its beginning, `@example.org`, a host name, an order number or an address. A transaction or the beginning of an API key serves, too.',
  },
  {
    ...{ path: 'cases', group: 'Customers', title: 'Abuse', list: 'cases', key: 'id', filters: ['state', 'accountId'] },
    fields: 'id state source address at orderNumber accountId text deadline result limitedAt createdAt closedAt',
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'address', title: 'Address', as: 'code' },
      { field: 'source', title: 'From', wide: true },
      { field: 'orderNumber', title: 'Order', as: 'code', wide: true },
      { field: 'deadline', title: 'Deadline' },
    ],
    actions: [{ mutation: 'openCase', label: 'Open a case' }],
    rowActions: [
      { mutation: 'takeMeasure', label: 'Take a measure', of: byId, when: is('state', 'OPEN'), destroys: true },
      { mutation: 'closeCase', label: 'Close', of: byId, when: is('state', 'OPEN') },
    ],
    empty: 'No complaint. Open a case when somebody complains about one of your addresses.',
  },
  {
    ...{ path: 'messages', group: 'Customers', title: 'Messages', list: 'messages', key: 'id' },
    filters: ['from', 'accountId', 'paid', 'unread'],
    words: { from: { title: 'Direction', values: { CUSTOMER: '↓ received', OPERATOR: '↑ sent' } } },
    fields: 'id from accountId subject body related { type id } createdAt readAt',
    columns: [
      { field: 'from', title: 'Direction', as: 'state' },
      { field: 'subject', title: 'Subject' },
      { field: 'accountId', title: 'Account', as: 'code', wide: true },
      { field: 'createdAt', title: 'Age', as: 'age' },
    ],
    actions: [{ mutation: 'sendMessage', label: 'Write a message', asks: recipients, choice: TO }],
    rowActions: [
      {
        ...{ mutation: 'sendMessage', label: 'Answer', asks: recipients, choice: TO },
        of: ({ accountId, subject }) => ({ input: { accountId, subject } }),
      },
      {
        mutation: 'markMessageRead',
        label: 'Mark as read',
        of: byId,
        when: isUnread,
      },
      {
        ...{ mutation: 'markMessagesRead', label: 'Mark all of the account as read' },
        of: ({ accountId }) => ({ accountId }),
        when: isUnread,
      },
    ],
    empty: 'No message. You cannot mail a customer, but a message reaches the account over REST, MCP and webhooks.',
  },
  {
    ...{ path: 'agents', group: 'Customers', title: 'Directory of agents', list: 'agents', key: 'slug' },
    filters: ['q', 'skill', 'verified'],
    fields: 'id slug name description url status verified x402 version providerName createdAt updatedAt',
    columns: [
      { field: 'status', title: 'State', as: 'state' },
      { field: 'name', title: 'Name' },
      { field: 'slug', title: 'Slug', as: 'code', wide: true },
      { field: 'verified', title: 'Verified', wide: true },
      { field: 'updatedAt', title: 'Changed', wide: true },
    ],
    rowActions: [{ mutation: 'hideAgent', label: 'Hide', of: byId }],
    empty: 'No agent has published an entry.',
  },
  {
    ...{ path: 'hidden-agents', group: 'Customers', title: 'Hidden agents', list: 'hiddenAgents', key: 'slug' },
    fields: 'id slug name description url status createdAt updatedAt',
    columns: [
      { field: 'name', title: 'Name' },
      { field: 'slug', title: 'Slug', as: 'code' },
      { field: 'url', title: 'Address', wide: true },
      { field: 'updatedAt', title: 'Changed', wide: true },
    ],
    rowActions: [{ mutation: 'showAgent', label: 'List again', of: byId }],
    empty: 'You have hidden no agent. The directory lists an entry as its owner publishes it.',
  },
];
