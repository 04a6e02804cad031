/** The pages about the company. */
import { byId, is, type Page } from './page.ts';

export const COMPANY: readonly Page[] = [
  {
    ...{ path: 'operators', group: 'Company', title: 'Operators', list: 'operators', key: 'name id' },
    filters: ['state'],
    fields: 'id name role state expiresAt createdAt endedAt',
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'name', title: 'Name' },
      { field: 'role', title: 'Role' },
      { field: 'expiresAt', title: 'Token until', wide: true },
    ],
    actions: [{ mutation: 'addOperator', label: 'Add an operator', shows: 'token operator { name role expiresAt }' }],
    rowActions: [
      { mutation: 'setOperatorRole', label: 'Change the role', of: byId, when: is('state', 'ACTIVE') },
      {
        ...{ mutation: 'renewOperatorToken', label: 'Renew the token', of: byId, when: is('state', 'ACTIVE') },
        shows: 'token operator { name expiresAt }',
      },
      { mutation: 'endOperator', label: 'End', of: byId, when: is('state', 'ACTIVE'), destroys: true },
    ],
    empty: 'Only the token in DATA_DIR works. Give each person and each tool a name and a token of its own.',
  },
  {
    ...{ path: 'events', group: 'Company', title: 'Events', list: 'operatorEvents', key: 'id' },
    filters: ['type', 'since'],
    fields: 'id createdAt type subject data',
    columns: [
      { field: 'createdAt', title: 'Time' },
      { field: 'type', title: 'Event' },
      { field: 'subject', title: 'On', as: 'code', wide: true },
      { field: 'data', title: 'Details', wide: true },
    ],
    empty: 'No event fits.',
  },
  {
    ...{ path: 'audit', group: 'Company', title: 'Audit log', list: 'auditLog', key: 'id' },
    filters: ['accountId', 'action', 'since', 'until'],
    fields: 'id createdAt action actor { type id name } method path status count requestId resource { type id }',
    columns: [
      { field: 'createdAt', title: 'Time' },
      { field: 'actor', title: 'Actor', as: 'thing', wide: true },
      { field: 'action', title: 'Act' },
      { field: 'resource', title: 'On', as: 'thing', wide: true },
      { field: 'path', title: 'Path', wide: true },
      { field: 'status', title: 'Status', as: 'number', wide: true },
    ],
    empty: 'No entry fits.',
  },
];
