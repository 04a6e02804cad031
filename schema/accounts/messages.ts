/** Messages between the operator and customers. */
import type { Message } from '../../entities/accounts/message.ts';
import {
  countRecipients,
  listMessages,
  MESSAGE_SENDERS,
  markMessageRead,
  markMessagesRead,
  RELATED_TYPES,
  type SentMessage,
  sendMessage,
  writeMessage,
} from '../../resolvers/accounts/messages.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const MessageSender = enumType('MessageSender', 'The author of a message.', MESSAGE_SENDERS);
const RelatedType = enumType('RelatedType', 'The kind of a thing that a message is about.', RELATED_TYPES);

const RelatedThing = objectType<Message>('RelatedThing', 'A thing that a message is about.', (t) => ({
  type: t.field({
    type: RelatedType,
    description: 'The kind of the thing.',
    resolve: ({ relatedType }) => relatedType!,
  }),
  id: t.string({ description: 'Its id or order number.', resolve: ({ relatedId }) => relatedId! }),
}));
export const MessageType = objectType<Message>('Message', 'A message between the operator and a customer.', (t) => ({
  id: t.exposeID('id', { description: 'The id of the message.' }),
  accountId: t.exposeID('accountId', { description: 'The customer.' }),
  from: t.expose('sender', { type: MessageSender, description: 'The side that wrote the message.' }),
  credentialId: t.exposeID('credentialId', {
    nullable: true,
    description:
      'The API key or session of the customer that wrote it. Null: the operator did, or it is from an earlier version.',
  }),
  subject: t.exposeString('title', { description: 'The subject, in one line.' }),
  body: t.exposeString('body', { description: 'The text.' }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  readAt: t.expose('readAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When the recipient marked it as read.',
  }),
  related: t.field({
    type: RelatedThing,
    nullable: true,
    description: 'The thing that it is about.',
    resolve: (message) => (message.relatedType === null ? null : message),
  }),
}));
const MessagePage = pageOf('Message', MessageType);
const SentMessageType = objectType<SentMessage>('SentMessage', 'A message of the operator.', (t) => ({
  id: t.exposeID('id', { description: 'The message. To many accounts: the subject of the task that writes them.' }),
  message: t.expose('message', { type: MessageType, nullable: true, description: 'Null: a worker writes them.' }),
}));

const RelatedInput = inputType('RelatedInput', (t) => ({
  type: t.field({ type: RelatedType, description: 'The kind of the thing.', required: true }),
  id: t.field({ type: 'Line', required: true, description: 'Its id or order number.' }),
}));
const WriteMessageInput = inputType('WriteMessageInput', (t) => ({
  subject: t.field({ type: 'MessageSubject', required: true, description: 'One line of up to 120 characters.' }),
  body: t.field({ type: 'MessageBody', required: true, description: 'Up to 4,000 characters.' }),
  related: t.field({ type: RelatedInput, description: 'The thing that the message is about.' }),
}));
const SendMessageInput = inputType('SendMessageInput', (t) => ({
  subject: t.field({ type: 'MessageSubject', required: true }),
  body: t.field({ type: 'MessageBody', required: true }),
  related: t.field({ type: RelatedInput, description: 'To many accounts: an incident.' }),
  accountId: t.field({ type: 'ID', description: 'To this account.' }),
  region: t.field({ type: 'Code', description: 'To each account with a server at this bastion.' }),
  all: t.boolean({ description: 'To all accounts.' }),
}));

builder.queryFields((t) => ({
  messages: t.field({
    type: MessagePage,
    scope: 'read',
    description: 'Messages with the operator, newest first.',
    args: {
      ...pageArgs(),
      accountId: t.arg({ type: 'ID', description: 'For the operator: only messages of this account.' }),
      paid: t.arg.boolean({
        description: 'For the operator: only messages of accounts that have paid, or only those of others.',
      }),
      unread: t.arg.boolean({ description: 'Only messages that the caller should still read.' }),
      from: t.arg({ type: MessageSender, description: 'Only messages that this side wrote.' }),
    },
    resolve: (_, { accountId, paid, unread, from, ...page }, context) =>
      listMessages(context, page, { accountId, paid, unread, from }),
  }),
  messageRecipients: t.int({
    scope: 'operator',
    right: 'support',
    errors: ['unknown_region'],
    description: 'The number of accounts that a message to a bastion or to all reaches now.',
    args: { region: t.arg({ type: 'Code', description: 'Default: all accounts.' }) },
    resolve: (_, { region }, context) => countRecipients(context, region),
  }),
}));

builder.mutationFields((t) => ({
  writeMessage: t.field({
    type: MessageType,
    scope: 'full',
    whileSuspended: true,
    urgent: false,
    description: 'Writes a message to the operator. A suspended account may do so, too.',
    args: { input: t.arg({ type: WriteMessageInput, required: true }) },
    resolve: (_, { input }, context) => writeMessage(context, input),
  }),
  markMessageRead: t.field({
    type: MessageType,
    scope: 'full',
    right: 'support',
    whileSuspended: true,
    urgent: false,
    description: 'Marks a message to the caller as read.',
    args: { id: t.arg({ type: 'ID', required: true, description: 'The message.' }) },
    resolve: (_, { id }, context) => markMessageRead(context, id),
  }),
  markMessagesRead: t.int({
    scope: 'operator',
    right: 'support',
    description: 'Marks all messages of an account to the operator as read, and returns how many.',
    args: { accountId: t.arg({ type: 'ID', required: true, description: 'The customer.' }) },
    resolve: (_, { accountId }, context) => markMessagesRead(context, accountId),
  }),
  sendMessage: t.field({
    type: SentMessageType,
    scope: 'operator',
    right: 'support',
    description: 'Sends a message to one account, to the customers of a bastion, or to all accounts.',
    args: {
      input: t.arg({ type: SendMessageInput, required: true }),
      key: t.arg({
        type: 'Line',
        description: 'Your own name for the message. Sending it again within 24 hours sends nothing.',
      }),
    },
    resolve: (_, { input, key }, context) => sendMessage(context, input, key),
  }),
}));
