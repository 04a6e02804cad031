/** Files for programs that meet the domain: agents, crawlers, catalogues and researchers. */
import type { Reference } from './document.ts';
import type { Brand } from './frame.ts';
import type { Guide } from './guides.ts';

/** https://llmstxt.org: the pages in Markdown, for a model. */
export const llmsText = ({ name }: Brand, publicUrl: string, guides: readonly Guide[], { nouns }: Reference): string =>
  [
    `# ${name}`,
    '',
    `> ${name} sells VPS and dedicated servers for cryptocurrency, without identity checks. Agents can register, pay and order alone, over MCP or REST.`,
    '',
    `The MCP endpoint is ${publicUrl}/mcp (Streamable HTTP). An agent needs no credential to connect, to read the catalog and to register. The REST API is below ${publicUrl}/v1. Errors name the next step.`,
    '',
    '## Guides',
    '',
    ...guides.map(({ title, path, summary }) => `- [${title}](${publicUrl}${path}.md): ${summary}`),
    '',
    '## Reference',
    '',
    `- [OpenAPI document](${publicUrl}/v1/openapi.json): every operation, field and example`,
    `- [Errors](${publicUrl}/docs/errors): every code, with its meaning`,
    ...nouns.map(({ title, page, description }) => `- [${title}](${publicUrl}${page}): ${description}`),
    '',
    '## Live',
    '',
    `- [Catalog](${publicUrl}/v1/catalog): prices, stock, regions and images, as JSON`,
    `- [Status](${publicUrl}/v1/transparency/status): the health of the service, as JSON`,
    `- [Warrant canary](${publicUrl}/v1/transparency/canary): as JSON`,
    '',
  ].join('\n');

/** RFC 9727, in the JSON of RFC 9264. */
export const API_CATALOG_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';
export const apiCatalog = (publicUrl: string): object => ({
  linkset: [
    {
      anchor: `${publicUrl}/v1`,
      'service-desc': [{ href: `${publicUrl}/v1/openapi.json`, type: 'application/json' }],
      'service-doc': [{ href: `${publicUrl}/docs/api`, type: 'text/html' }],
      status: [{ href: `${publicUrl}/v1/transparency/status`, type: 'application/json' }],
    },
    {
      anchor: `${publicUrl}/mcp`,
      'service-doc': [{ href: `${publicUrl}/docs/agents`, type: 'text/html' }],
      'service-meta': [{ href: `${publicUrl}/.well-known/agent-card.json`, type: 'application/json' }],
      status: [{ href: `${publicUrl}/v1/transparency/status`, type: 'application/json' }],
    },
  ],
});

/** The card of A2A 1.0. The service is no A2A agent, and the card says so: its one interface speaks MCP. */
export const agentCard = ({ name }: Brand, publicUrl: string): object => ({
  name,
  description:
    'Sells VPS and dedicated servers for cryptocurrency, without identity checks. It speaks MCP and not A2A: connect to the interface of this card with an MCP client.',
  version: '1.1.0',
  provider: { organization: name, url: publicUrl },
  documentationUrl: `${publicUrl}/docs/agents`,
  iconUrl: `${publicUrl}/favicon.svg`,
  supportedInterfaces: [
    { url: `${publicUrl}/mcp`, protocolBinding: 'https://modelcontextprotocol.io', protocolVersion: '2026-07-28' },
  ],
  capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: false },
  defaultInputModes: ['application/json'],
  defaultOutputModes: ['application/json'],
  securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
  skills: [
    skill('order', 'Order servers', 'Compares plans and regions, orders a server, and waits until it runs.', [
      'vps',
      'dedicated',
    ]),
    skill(
      'operate',
      'Operate servers',
      'Starts, stops, rebuilds, resizes and deletes servers, and reads their metrics.',
      ['vps', 'dedicated'],
    ),
    skill('pay', 'Pay', 'Opens top-ups in coins, or takes a payment by x402 within a call.', ['crypto', 'x402']),
  ],
});

const skill = (id: string, name: string, description: string, tags: string[]) => ({ id, name, description, tags });

const DAY_MS = 86_400_000;
/** RFC 9116 recommends less than a year. */
const EXPIRES_DAYS = 90;

/** RFC 9116. It expires some days ahead, counted from the last midnight, so that a day has one text. */
export function securityText(contact: string, publicUrl: string, now: number): string {
  const expires = new Date(Math.floor(now / DAY_MS) * DAY_MS + EXPIRES_DAYS * DAY_MS);
  return [
    `Contact: ${contact}`,
    `Expires: ${expires.toISOString()}`,
    'Preferred-Languages: en',
    `Canonical: ${publicUrl}/.well-known/security.txt`,
    '',
  ].join('\n');
}

/** Crawlers may read pages. Answers of the API are no pages. */
export const ROBOTS = [
  'User-agent: *',
  'Disallow: /v1/',
  'Allow: /v1/openapi.json',
  'Disallow: /mcp',
  'Disallow: /docs/search',
  '',
].join('\n');
