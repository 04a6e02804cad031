/** The pages about customers and their servers. */
import { byId, is, not, type Page } from './page.ts';

export const CUSTOMERS: readonly Page[] = [
  {
    ...{ path: 'servers', group: 'Customers', title: 'Servers', list: 'servers', key: 'orderNumber' },
    filters: ['status', 'region', 'hostname', 'labelSelector'],
    fields: `orderNumber kind status hostname serviceCode region os ipv4 ipv6 priceMonthUsd paidUntil autoRenew
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
        ...{ mutation: 'deleteServer', label: 'Delete', destroys: true },
        of: ({ orderNumber }) => ({ orderNumber }),
        when: not('status', 'DELETED', 'DELETING', 'FAILED'),
      },
    ],
    empty: 'No server yet. Customers order over REST or MCP, and their servers appear here at once.',
  },
  {
    ...{ path: 'messages', group: 'Customers', title: 'Messages', list: 'messages', key: 'id' },
    filters: ['accountId', 'unread'],
    fields: 'id from accountId subject body related { type id } createdAt readAt',
    columns: [
      { field: 'from', title: 'From', as: 'state' },
      { field: 'subject', title: 'Subject' },
      { field: 'accountId', title: 'Account', as: 'code', wide: true },
      { field: 'createdAt', title: 'Age', as: 'age' },
    ],
    actions: [{ mutation: 'sendMessage', label: 'Write a message' }],
    rowActions: [
      {
        ...{ mutation: 'sendMessage', label: 'Answer' },
        of: ({ accountId, subject }) => ({ input: { accountId, subject } }),
      },
      {
        mutation: 'markMessageRead',
        label: 'Mark as read',
        of: byId,
        when: (row) => row.from === 'CUSTOMER' && !row.readAt,
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
    rowActions: [{ mutation: 'hideAgent', label: 'Hide', of: byId, when: is('status', 'LISTED') }],
    empty: 'No agent has published an entry.',
  },
];
