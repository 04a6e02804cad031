import { Command } from 'commander';
import type { ApiKey, Input, Message, Webhook, WebhookDelivery } from '../../../client/src/index.ts';
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
const DELIVERIES: Columns<WebhookDelivery> = {
  id: (one) => one.id,
  event: (one) => one.event_type,
  status: (one) => one.status,
  attempts: (one) => one.attempts,
  answer: (one) => one.response_status ?? one.error,
  age: (one) => ago(one.created_at),
};
const MESSAGES: Columns<Message> = {
  id: (one) => one.id,
  from: (one) => one.from,
  subject: (one) => one.subject,
  age: (one) => ago(one.created_at),
  read: (one) => (one.read_at ? 'yes' : 'no'),
};

interface Options {
  scope?: string;
  limit?: string;
  expires?: string;
  network?: string[];
  events?: string[];
}
type Act = (session: Session, argument: string, options: Options) => Promise<unknown>;
/** A command with one argument, which shows the answer. */
const acts = (name: string, argument: string, description: string, act: Act) =>
  new Command(name)
    .description(description)
    .argument(argument)
    .action(async (given: string, options: Options, command: Command) => {
      const session = sessionOf(command);
      print(await act(session, given, options), session.format);
    });
/** Takes an option that is repeated, or has commas. */
const collect = (value: string, all: string[] = []): string[] => [...all, ...value.split(',')];
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
              ...(network && { ip_allowlist: network }),
            },
            call,
          ),
      )
        .requiredOption('--scope <scopes>', 'read, servers, billing or full; several with blanks')
        .option('--limit <usd>', 'the most that it may spend')
        .option('--expires <time>', 'when it ends')
        .option('--network <cidr>', 'a network that may use it, repeatable', collect)
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
      acts(
        'create',
        '<url>',
        'Make a webhook. Its secret is shown once',
        ({ freehold, call }, url, { events = ['*'] }) => freehold.webhooks.create({ url, event_filter: events }, call),
      )
        .option('--events <types>', 'the types of its events, repeatable (default: all)', collect)
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
        ({ freehold, call }, id) => freehold.webhooks.rotateSecret(id, {}, call),
      ),
    )
    .addCommand(
      acts('delete', '<id>', 'Delete a webhook', ({ freehold, call }, id) => freehold.webhooks.delete(id, call)),
    )
    .addCommand(webhookEvents())
    .addCommand(deliveries())
    .addCommand(redeliver());

const webhookEvents = () =>
  new Command('events').description('List the types of events').action(async (_options, command: Command) => {
    const { freehold, format } = sessionOf(command);
    const columns: Columns<{ type: string; description: string }> = {
      type: (one) => one.type,
      description: (one) => one.description,
    };
    printRows(await freehold.webhooks.events().all(), columns, format);
  });

const deliveries = () =>
  new Command('deliveries')
    .description('List the deliveries of a webhook, newest first')
    .argument('<id>', 'the id of the webhook')
    .option('--status <status...>', 'only those with one of these statuses')
    .addHelpText('after', '\nExample:\n  freehold webhook deliveries whk_01m7z3eaymx8r1n4b6tq0c5d2h --status failed')
    .action(async (id: string, filter: Pick<Input<'ListWebhookDeliveries'>, 'status'>, command: Command) => {
      const { freehold, format } = sessionOf(command);
      printRows(await freehold.webhooks.deliveries(id, filter).all(), DELIVERIES, format);
    });

const redeliver = () =>
  new Command('redeliver')
    .description('Send a delivery again')
    .argument('<id>', 'the id of the webhook')
    .argument('<delivery>', 'the id of the delivery')
    .action(async (id: string, delivery: string, _options, command: Command) => {
      const { freehold, format, call } = sessionOf(command);
      print(await freehold.webhooks.redeliver(id, delivery, call), format);
    });

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
