import { Command } from 'commander';
import type { ApiKey, Message, Webhook } from '../../../client/src/index.ts';
import { ago, type Columns, print, printRows } from '../output.ts';
import { readInput } from '../questions.ts';
import { type Session, sessionOf } from '../session.ts';

const KEYS: Columns<ApiKey> = {
  id: (one) => one.key_id,
  name: (one) => one.name,
  scope: (one) => one.scope,
  status: (one) => one.status,
  used: (one) => ago(one.last_used_at),
  expires: (one) => one.expires_at,
};
const WEBHOOKS: Columns<Webhook> = {
  id: (one) => one.id,
  url: (one) => one.url,
  events: (one) => one.event_filter,
  status: (one) => one.status,
  last: (one) => one.last_delivery?.status,
};
const MESSAGES: Columns<Message> = {
  id: (one) => one.id,
  from: (one) => one.from,
  subject: (one) => one.subject,
  age: (one) => ago(one.created_at),
  read: (one) => (one.read_at ? 'yes' : 'no'),
};

type Act = (session: Session, argument: string, options: Record<string, string>) => Promise<unknown>;
/** A command with one argument, which shows the answer. */
const acts = (name: string, argument: string, description: string, act: Act) =>
  new Command(name)
    .description(description)
    .argument(argument)
    .action(async (given: string, options: Record<string, string>, command: Command) => {
      const session = sessionOf(command);
      print(await act(session, given, options), session.format);
    });
const lists = <T extends object>(columns: Columns<T>, description: string, read: (session: Session) => Promise<T[]>) =>
  new Command('list')
    .alias('ls')
    .description(description)
    .action(async (_options, command: Command) => {
      const session = sessionOf(command);
      printRows(await read(session), columns, session.format);
    });

export const apiKey = () =>
  new Command('api-key')
    .description('Manage API keys')
    .addCommand(
      acts(
        'create',
        '<name>',
        'Make an API key. Its text is shown once',
        ({ freehold, call }, name, { scope = '', limit, expires, network }) =>
          freehold.apiKeys.create(
            {
              name,
              scope,
              ...(limit && { spend_limit_usd: Number(limit) }),
              ...(expires && { expires_at: expires }),
              ...(network && { ip_allowlist: network.split(',') }),
            },
            call,
          ),
      )
        .requiredOption('--scope <scopes>', 'read, servers, billing or full; several with blanks')
        .option('--limit <usd>', 'the most that it may spend')
        .option('--expires <time>', 'when it ends')
        .option('--network <cidrs>', 'the networks that may use it, with commas')
        .addHelpText('after', '\nExample:\n  freehold api-key create ci --scope "read servers" --limit 50'),
    )
    .addCommand(lists(KEYS, 'List the API keys', ({ freehold }) => freehold.apiKeys.list().all()))
    .addCommand(
      acts('delete', '<id>', 'Revoke an API key', ({ freehold, call }, id) => freehold.apiKeys.revoke(id, call)),
    );

export const webhook = () =>
  new Command('webhook')
    .description('Manage webhooks')
    .addCommand(
      acts('create', '<url>', 'Make a webhook. Its secret is shown once', ({ freehold, call }, url, { events = '*' }) =>
        freehold.webhooks.create({ url, event_filter: events }, call),
      )
        .option('--events <types>', 'types of events, with commas', '*')
        .addHelpText(
          'after',
          '\nExample:\n  freehold webhook create https://example.org/hook --events "server.*,topup.confirmed"',
        ),
    )
    .addCommand(lists(WEBHOOKS, 'List the webhooks', ({ freehold }) => freehold.webhooks.list().all()))
    .addCommand(acts('test', '<id>', 'Send a test event', ({ freehold, call }, id) => freehold.webhooks.test(id, call)))
    .addCommand(
      acts(
        'rotate-secret',
        '<id>',
        'Make a new secret. The old one signs beside it for a day',
        ({ freehold, call }, id) => freehold.webhooks.rotateSecret({ id }, call),
      ),
    )
    .addCommand(
      acts('delete', '<id>', 'Delete a webhook', ({ freehold, call }, id) => freehold.webhooks.delete(id, call)),
    );

export const message = () =>
  new Command('message')
    .description('Read and write messages to the operator')
    .addCommand(lists(MESSAGES, 'List the messages, newest first', ({ freehold }) => freehold.messages.list().all()))
    .addCommand(
      acts('read', '<id>', 'Mark a message as read, and show it', ({ freehold, call }, id) =>
        freehold.messages.markRead(id, call),
      ),
    )
    .addCommand(
      acts(
        'send',
        '<subject>',
        'Write a message. Its text comes from the standard input',
        async ({ freehold, call }, subject) => freehold.messages.write({ subject, body: await readInput() }, call),
      ).addHelpText('after', '\nExample:\n  echo "Port 25, please." | freehold message send "Mail"'),
    );
