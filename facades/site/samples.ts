/** Samples of an operation, made from the examples of the OpenAPI document: for a shell, and for an agent. */
import type { Endpoint } from './document.ts';

export interface Sample {
  title: string;
  /** A language of markdown.ts. */
  language: string;
  code: string;
}

type Values = Record<string, unknown>;

const isForm = ({ body }: Endpoint): boolean => body?.types.includes('application/x-www-form-urlencoded') ?? false;

/** A text as one word of a shell. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** The path with its examples, and with the parameters of the query that the operation requires. */
function urlOf({ path, parameters }: Endpoint, publicUrl: string): string {
  const of = (place: string) => parameters.filter((parameter) => parameter.in === place);
  const filled = of('path').reduce((text, { name, example }) => text.replace(`{${name}}`, String(example)), path);
  const query = new URLSearchParams(
    of('query').flatMap(({ name, required, example }) => (required ? [[name, String(example)]] : [])),
  ).toString();
  return `${publicUrl}${filled}${query && `?${query}`}`;
}

/** Optional members of the example stay, because they show what a caller may send. */
export function curlOf(endpoint: Endpoint, publicUrl: string): string {
  const { method, credential, body } = endpoint;
  const url = quoted(urlOf(endpoint, publicUrl));
  const parts = [method === 'GET' || (method === 'POST' && body) ? `curl ${url}` : `curl -X ${method} ${url}`];
  if (credential === 'client') parts.push('-u "$CLIENT_ID:$CLIENT_SECRET"');
  else if (credential) parts.push('-H "Authorization: Bearer $FREEHOLD_TOKEN"');
  if (body && isForm(endpoint))
    for (const [name, value] of Object.entries(body.example as Values)) parts.push(`-d ${quoted(`${name}=${value}`)}`);
  else if (body) {
    parts.push("-H 'Content-Type: application/json'");
    parts.push(`-d ${quoted(JSON.stringify(body.example ?? {}, null, 2))}`);
  }
  return parts.join(' \\\n  ');
}

/** The call of a tool in JSON-RPC, as an agent's client sends it. */
export function toolCallOf({ tool, parameters, body }: Endpoint): string | undefined {
  if (!tool) return undefined;
  const given = parameters.filter(({ required, in: place }) => required && place !== 'header');
  const args: Values = {
    ...Object.fromEntries(given.map(({ name, example }) => [name, example])),
    ...(body?.example as Values | undefined),
  };
  return JSON.stringify({ method: 'tools/call', params: { name: tool, arguments: args } }, null, 2);
}

/** The methods of the SDK that are shorter than its `call`. The parameters of the path come before the input. */
const METHODS: Readonly<Record<string, string>> = {
  ...{ OrderServer: 'servers.order', ListServers: 'servers.list', GetServer: 'servers.get' },
  ...{ UpdateServer: 'servers.update', DeleteServer: 'servers.delete', GetServerMetrics: 'servers.metrics' },
  ...{ CreateTopup: 'topUps.create', ListTopups: 'topUps.list', GetTopup: 'topUps.get', CancelTopup: 'topUps.cancel' },
  ...{
    AddSshKey: 'sshKeys.add',
    ListSshKeys: 'sshKeys.list',
    GetSshKey: 'sshKeys.get',
    DeleteSshKey: 'sshKeys.delete',
  },
  ...{ CreateApiKey: 'apiKeys.create', ListApiKeys: 'apiKeys.list', RevokeApiKey: 'apiKeys.revoke' },
  ...{ CreateWebhook: 'webhooks.create', ListWebhooks: 'webhooks.list', TestWebhook: 'webhooks.test' },
  ...{ GetBalance: 'account.balance', GetCatalog: 'catalog.get', GetStatus: 'transparency.status' },
};

/** A value as JavaScript: JSON with plain names. */
const literal = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^(\s*)"([A-Za-z_]\w*)":/gm, '$1$2:');

/** The call of the SDK for TypeScript. It has no operations that take forms. */
export function sdkCallOf(endpoint: Endpoint, publicUrl: string): string | undefined {
  if (isForm(endpoint)) return undefined;
  const { name, parameters, body, answer, credential } = endpoint;
  const valuesIn = (place: string): Values =>
    Object.fromEntries(
      parameters.flatMap(({ in: where, required, ...one }) =>
        where === place && required ? [[one.name, one.example]] : [],
      ),
    );
  const [path, rest] = [valuesIn('path'), { ...valuesIn('query'), ...(body?.example as Values | undefined) }];
  const method = METHODS[name];
  const args = method
    ? [...Object.values(path), ...(Object.keys(rest).length ? [rest] : [])]
    : [name, { ...path, ...rest }];
  const call = `freehold.${method ?? 'call'}(${args.map(literal).join(', ')})`;
  const isList = method && answer.schema?.properties?.has_more;
  const options = `{ url: '${publicUrl}'${credential ? ', apiKey: env.FREEHOLD_TOKEN' : ''} }`;
  return [
    ...(credential ? ["import { env } from 'node:process';"] : []),
    "import { Freehold } from 'freehold';",
    '',
    `const freehold = new Freehold(${options});`,
    isList ? `for await (const entry of ${call}) console.log(entry);` : `console.log(await ${call});`,
  ].join('\n');
}

/** All samples of an operation. A planned one has none. @param hasSdk whether visitors can download the SDK */
export function samplesOf(endpoint: Endpoint, publicUrl: string, hasSdk: boolean): Sample[] {
  if (endpoint.isPlanned) return [];
  const call = toolCallOf(endpoint);
  const sdk = hasSdk ? sdkCallOf(endpoint, publicUrl) : undefined;
  return [
    { title: 'curl', language: 'bash', code: curlOf(endpoint, publicUrl) },
    ...(sdk ? [{ title: 'TypeScript', language: 'ts', code: sdk }] : []),
    ...(call ? [{ title: 'MCP', language: 'json', code: call }] : []),
  ];
}
