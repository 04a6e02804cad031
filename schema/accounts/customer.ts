/** An account with all that belongs to it, for the operator. */
import type { Account } from '../../entities/accounts/account.ts';
import type { AccountNote } from '../../entities/accounts/account-note.ts';
import {
  addNote,
  balanceOf,
  casesOf,
  eventsOf,
  findCustomer,
  messagesOf,
  notesOf,
  paymentsOf,
  serversOf,
} from '../../resolvers/accounts/customer.ts';
import { builder, objectType } from '../builder.ts';
import { OperatorEventType } from '../operator-events.ts';
import { PaymentType } from '../payments/payments.ts';
import { ServerType } from '../servers/servers.ts';
import { AccountType, BalanceType } from './account.ts';
import { CaseType } from './cases.ts';
import { MessageType } from './messages.ts';

const NoteType = objectType<AccountNote>('Note', 'A note of an operator. The customer does not see it.', (t) => ({
  id: t.exposeID('id'),
  accountId: t.exposeID('accountId'),
  author: t.exposeString('author', { description: 'The name of the operator.' }),
  text: t.exposeString('body'),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
}));

const CustomerType = objectType<Account>('Customer', 'An account with its latest 50 rows of each kind.', (t) => ({
  account: t.field({ type: AccountType, resolve: (account) => account }),
  balance: t.field({ type: BalanceType, resolve: (account, _, context) => balanceOf(context, account) }),
  servers: t.field({
    type: [ServerType],
    description: 'Without deleted ones.',
    resolve: (account, _, context) => serversOf(context, account),
  }),
  payments: t.field({ type: [PaymentType], resolve: (account, _, context) => paymentsOf(context, account) }),
  messages: t.field({ type: [MessageType], resolve: (account, _, context) => messagesOf(context, account) }),
  events: t.field({ type: [OperatorEventType], resolve: (account, _, context) => eventsOf(context, account) }),
  notes: t.field({ type: [NoteType], resolve: (account, _, context) => notesOf(context, account) }),
  cases: t.field({
    type: [CaseType],
    description: 'Open ones first.',
    resolve: (account, _, context) => casesOf(context, account),
  }),
}));

builder.queryFields((t) => ({
  customer: t.field({
    type: CustomerType,
    scope: 'operator',
    description: 'An account with its servers, payments, messages, events, notes and cases.',
    args: { id: t.arg({ type: 'ID', required: true, description: 'The account.' }) },
    resolve: (_, { id }, context) => findCustomer(context, id),
  }),
}));

builder.mutationFields((t) => ({
  addNote: t.field({
    type: NoteType,
    scope: 'operator',
    right: 'support',
    description: 'Adds a note for operators to an account.',
    args: {
      accountId: t.arg({ type: 'ID', required: true, description: 'The account.' }),
      text: t.arg({ type: 'MessageBody', required: true, description: 'The note.' }),
    },
    resolve: (_, { accountId, text }, context) => addNote(context, accountId, text),
  }),
}));
