/** Samples with the SDKs. They have no operations that take forms. */
import { KEYWORDS } from '../../client/python.ts';
import { snake } from '../../compile/names.ts';
import { type Endpoint, inputOf, isForm } from '../document.ts';

/** The methods that are shorter than `call`. The parameters of the path come before the rest of the input. */
const METHODS: Readonly<Record<string, string>> = {
  Register: 'account.register',
  Login: 'account.login',
  LoginTotp: 'account.loginTotp',
  ListSessions: 'account.sessions',
  RevokeSession: 'account.revokeSession',
  SetupTotp: 'account.setupTotp',
  EnableTotp: 'account.enableTotp',
  DisableTotp: 'account.disableTotp',
  NewRecoveryCodes: 'account.newRecoveryCodes',
  ChangePassword: 'account.changePassword',
  GetAccount: 'account.get',
  GetBalance: 'account.balance',
  GetUsage: 'account.usage',
  GetAuditLog: 'account.auditLog',
  CreateApiKey: 'apiKeys.create',
  ListApiKeys: 'apiKeys.list',
  RevokeApiKey: 'apiKeys.revoke',
  GetCatalog: 'catalog.get',
  GetCatalogItem: 'catalog.item',
  ListCoins: 'catalog.coins',
  ListBonusTiers: 'catalog.bonusTiers',
  CreateTopup: 'topUps.create',
  ListTopups: 'topUps.list',
  GetTopup: 'topUps.get',
  CancelTopup: 'topUps.cancel',
  GetReceipt: 'topUps.receipt',
  AddSshKey: 'sshKeys.add',
  ListSshKeys: 'sshKeys.list',
  GetSshKey: 'sshKeys.get',
  DeleteSshKey: 'sshKeys.delete',
  OrderServer: 'servers.order',
  ListServers: 'servers.list',
  GetServer: 'servers.get',
  UpdateServer: 'servers.update',
  DeleteServer: 'servers.delete',
  GetServerMetrics: 'servers.metrics',
  CreateWebhook: 'webhooks.create',
  ListWebhooks: 'webhooks.list',
  TestWebhook: 'webhooks.test',
  RotateWebhookSecret: 'webhooks.rotateSecret',
  DeleteWebhook: 'webhooks.delete',
  ListWebhookEvents: 'webhooks.events',
  ListWebhookDeliveries: 'webhooks.deliveries',
  RedeliverWebhook: 'webhooks.redeliver',
  ListMessages: 'messages.list',
  WriteMessage: 'messages.write',
  MarkMessageRead: 'messages.markRead',
  GetCanary: 'transparency.canary',
  GetStatus: 'transparency.status',
  GetPeering: 'transparency.peering',
};

/** A call, as both SDKs make it. */
interface Call {
  method: string | undefined;
  /** Those of the path, if a method takes them one by one. */
  ids: unknown[];
  named: Record<string, unknown>;
  /** A caller iterates over it. */
  isList: boolean;
}

function callOf(endpoint: Endpoint): Call {
  const method = METHODS[endpoint.name];
  const { path, query, body } = inputOf(endpoint);
  const rest = { ...query, ...body };
  return {
    method,
    ids: method ? Object.values(path) : [],
    named: method ? rest : { ...path, ...rest },
    isList: method !== undefined && endpoint.answer.schema?.properties?.has_more !== undefined,
  };
}

/** A value as JavaScript: JSON with plain names. */
const literal = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^(\s*)"([A-Za-z_]\w*)":/gm, '$1$2:');

export function typescriptCallOf(endpoint: Endpoint, publicUrl: string): string | undefined {
  if (isForm(endpoint)) return undefined;
  const { method, ids, named, isList } = callOf(endpoint);
  const hasInput = !method || Object.keys(named).length > 0;
  const args = [...(method ? ids : [endpoint.name]), ...(hasInput ? [named] : [])].map(literal).join(', ');
  const call = `freehold.${method ?? 'call'}(${args})`;
  const options = `{ url: '${publicUrl}'${endpoint.credential ? ', apiKey: env.FREEHOLD_TOKEN' : ''} }`;
  return [
    ...(endpoint.credential ? ["import { env } from 'node:process';"] : []),
    "import { Freehold } from 'freehold';",
    '',
    `const freehold = new Freehold(${options});`,
    isList ? `for await (const entry of ${call}) console.log(entry);` : `console.log(await ${call});`,
  ].join('\n');
}

/** A value as Python, which has dictionaries where JSON has objects. */
function pythonLiteral(value: unknown, indent: string): string {
  const inner = `${indent}    `;
  const block = (open: string, entries: string[], close: string) =>
    entries.length ? `${open}\n${entries.map((one) => `${inner}${one},\n`).join('')}${indent}${close}` : open + close;
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value))
    return block(
      '[',
      value.map((one) => pythonLiteral(one, inner)),
      ']',
    );
  if (typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonLiteral(one, inner)}`);
  return block('{', entries, '}');
}

export function pythonCallOf(endpoint: Endpoint, publicUrl: string): string | undefined {
  if (isForm(endpoint)) return undefined;
  const { method, ids, named, isList } = callOf(endpoint);
  const isLong = Object.keys(named).length > 1;
  const args = [
    ...(method ? ids : [endpoint.name]).map((one) => pythonLiteral(one, '    ')),
    ...Object.entries(named).map(
      ([name, value]) => `${name}${KEYWORDS.has(name) ? '_' : ''}=${pythonLiteral(value, isLong ? '    ' : '')}`,
    ),
  ];
  const given = isLong ? `\n${args.map((one) => `    ${one},\n`).join('')}` : args.join(', ');
  const call = `freehold.${snake(method ?? 'call')}(${given})`;
  const key = endpoint.credential ? ', api_key=os.environ["FREEHOLD_TOKEN"]' : '';
  // An order can be waited for, so its answer is an object.
  const answer = `${call}${endpoint.name === 'OrderServer' ? '.server' : ''}`;
  return [
    ...(endpoint.credential ? ['import os', ''] : []),
    'from freehold import Freehold',
    '',
    `freehold = Freehold("${publicUrl}"${key})`,
    ...(isList ? [`for entry in ${answer}:`, '    print(entry)'] : [`print(${answer})`]),
  ].join('\n');
}
