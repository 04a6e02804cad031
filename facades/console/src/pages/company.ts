/** The pages about the company. */
import type { Row } from '../api.ts';
import { byId, not, type Page } from './page.ts';

/** The page on which an invited person begins. */
const invitation = ({ code }: Row): string => `#invitation?code=${encodeURIComponent(String(code))}`;
const hasToken = ({ state, expiresAt }: Row): boolean => state === 'ACTIVE' && expiresAt !== null;

export const COMPANY: readonly Page[] = [
  {
    ...{ path: 'operators', group: 'Company', title: 'Operators', list: 'operators', key: 'name id' },
    filters: ['state'],
    fields: 'id name role state expiresAt invitationExpiresAt createdAt endedAt',
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'name', title: 'Name' },
      { field: 'role', title: 'Role' },
      { field: 'expiresAt', title: 'Token until', wide: true },
    ],
    actions: [
      {
        ...{ mutation: 'inviteOperator', label: 'Invite a person', link: invitation },
        shows: 'code operator { name role invitationExpiresAt }',
      },
      { mutation: 'addOperator', label: 'Add a tool', shows: 'token operator { name role expiresAt }' },
    ],
    rowActions: [
      {
        ...{ mutation: 'setOperatorRole', label: 'Change the role', when: not('state', 'ENDED') },
        of: ({ id, role }) => ({ id, seen: role }),
      },
      {
        ...{ mutation: 'renewInvitation', label: 'Invite again', of: byId, when: not('state', 'ENDED') },
        ...{ shows: 'code operator { name role invitationExpiresAt }', destroys: true, link: invitation },
      },
      {
        ...{ mutation: 'renewOperatorToken', label: 'Renew the token', of: byId, when: hasToken },
        shows: 'token operator { name expiresAt }',
      },
      { mutation: 'endOperator', label: 'End', of: byId, when: not('state', 'ENDED'), destroys: true },
    ],
    empty:
      'You are the only operator, by the token of the first owner. Invite each person, and give each tool a token.',
  },
  {
    ...{ path: 'sessions', group: 'Company', title: 'Sessions', list: 'operatorSessions', key: 'id' },
    fields: 'id name isCurrent userAgent createdAt usedAt expiresAt',
    columns: [
      { field: 'name', title: 'Operator' },
      { field: 'isCurrent', title: 'This one' },
      { field: 'usedAt', title: 'Last request', as: 'age' },
      { field: 'expiresAt', title: 'Until' },
      { field: 'userAgent', title: 'Browser', wide: true },
    ],
    actions: [{ mutation: 'renewOperatorRecoveryCodes', label: 'Get new recovery codes', shows: 'recoveryCodes' }],
    rowActions: [{ mutation: 'endOperatorSession', label: 'End', of: byId }],
    empty: 'You act by a token, which has no session.',
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
    actions: [{ mutation: 'noteBackup', label: 'Note a backup' }],
    empty: 'No event fits.',
  },
  {
    ...{ path: 'audit', group: 'Company', title: 'Audit log', list: 'auditLog', key: 'id' },
    filters: ['kind', 'operator', 'accountId', 'action', 'since', 'until'],
    starts: { kind: 'ACT' },
    choices: {
      operator: {
        query: 'operators { id name endedAt }',
        also: { id: 'operator', name: 'operator (the first owner)' },
      },
    },
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
