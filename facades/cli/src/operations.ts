/**
 * The command for each operation, and the words that give its input. The site makes its samples of the program from this
 * table, and a test runs them. Other operations have `freehold api`.
 */
import type { Input, OperationName } from '../../client/src/index.ts';

/** How a command takes the input of an operation. */
export interface Usage<Member extends string = string> {
  command: string;
  /** The members of the input that are arguments, in their order. */
  arguments?: readonly Member[];
  /** The options that give the other members. */
  options?: Readonly<Partial<Record<Member, `--${string}`>>>;
  /** The member that comes from the standard input. */
  input?: Member;
  /** The members that the command itself implies. */
  implied?: Readonly<Record<string, unknown>>;
  /** The option that a script adds, because it has no terminal. */
  inScripts?: string;
}
type Usages = { [Name in OperationName]?: Usage<keyof Input<Name> & string> };

const usages: Usages = {
  Register: { command: 'register', arguments: ['email'], input: 'password', inScripts: '--password-stdin' },
  Login: { command: 'login', arguments: ['email'], input: 'password', inScripts: '--password-stdin' },
  GetAccount: { command: 'account' },
  GetBalance: { command: 'balance' },
  GetUsage: { command: 'usage', options: { from: '--from', to: '--to' } },
  GetCatalog: { command: 'catalog types' },
  ListCoins: { command: 'catalog coins' },
  CreateApiKey: {
    command: 'api-key create',
    arguments: ['name'],
    options: {
      scope: '--scope',
      spend_limit_usd: '--limit',
      expires_at: '--expires',
      ip_allowlist: '--network',
    },
  },
  ListApiKeys: { command: 'api-key list' },
  RevokeApiKey: { command: 'api-key delete', arguments: ['key_id'] },
  CreateTopup: { command: 'topup create', arguments: ['amount_usd'], options: { crypto: '--coin' } },
  ListTopups: { command: 'topup list', options: { status: '--status' } },
  GetTopup: { command: 'topup get', arguments: ['order_number'] },
  CancelTopup: { command: 'topup cancel', arguments: ['order_number'] },
  GetReceipt: { command: 'topup receipt', arguments: ['order_number'] },
  AddSshKey: { command: 'ssh-key add -', options: { name: '--name' }, input: 'public_key' },
  ListSshKeys: { command: 'ssh-key list' },
  DeleteSshKey: { command: 'ssh-key delete', arguments: ['id'] },
  OrderServer: {
    command: 'server create',
    options: {
      service_code: '--type',
      region: '--location',
      os: '--image',
      hostname: '--name',
      ssh_key_ids: '--ssh-key',
      labels: '--label',
      max_price_usd: '--max-price',
    },
  },
  ListServers: {
    command: 'server list',
    options: { status: '--status', region: '--location', label_selector: '--selector' },
  },
  GetServer: { command: 'server get', arguments: ['order_number'] },
  UpdateServer: { command: 'server stop', arguments: ['order_number'], implied: { power_state: 'off' } },
  DeleteServer: { command: 'server delete', arguments: ['order_number'], inScripts: '--force' },
  CreateWebhook: { command: 'webhook create', arguments: ['url'], options: { event_filter: '--events' } },
  ListWebhooks: { command: 'webhook list' },
  ListWebhookEvents: { command: 'webhook events' },
  TestWebhook: { command: 'webhook test', arguments: ['id'] },
  RotateWebhookSecret: { command: 'webhook rotate-secret', arguments: ['id'] },
  ListWebhookDeliveries: { command: 'webhook deliveries', arguments: ['id'], options: { status: '--status' } },
  RedeliverWebhook: { command: 'webhook redeliver', arguments: ['id', 'delivery_id'] },
  DeleteWebhook: { command: 'webhook delete', arguments: ['id'] },
  ListMessages: { command: 'message list' },
  MarkMessageRead: { command: 'message read', arguments: ['id'] },
  WriteMessage: { command: 'message send', arguments: ['subject'], input: 'body' },
  GetCanary: { command: 'canary' },
  GetStatus: { command: 'status' },
};
/** By the name of the operation in the OpenAPI document. */
export const USAGES: ReadonlyMap<string, Usage> = new Map(Object.entries(usages));
