/**
 * Every scalar is a JSON Schema: the same object is the check of inputs, the description in OpenAPI, and the one that
 * MCP clients see. `x-error` names the code of the catalogue for a keyword that fails.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { GraphQLError } from 'graphql';
import { microsFromUsd, usdFromMicros } from '../entities/money.ts';
import { networkFrom } from '../resolvers/auth/networks.ts';
import { builder } from './builder.ts';

type Name = Exclude<
  keyof (typeof builder)['$inferSchemaTypes']['Scalars'],
  'String' | 'Int' | 'Float' | 'Boolean' | 'ID'
>;
interface Options {
  parse?: (value: never) => unknown;
  serialize?: (value: never) => unknown;
}

const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);

/** Text that PostgreSQL or JSON cannot hold: U+0000 and lone surrogates. */
export const malformed = (value: unknown): boolean => {
  if (typeof value === 'string') return !value.isWellFormed() || value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => malformed(key) || malformed(inner));
};

function scalar(name: Name, description: string, jsonSchema: object, { parse, serialize }: Options = {}) {
  const valid = ajv.compile(jsonSchema);
  builder.scalarType(name, {
    description,
    extensions: { jsonSchema: { ...jsonSchema, description } },
    serialize: (serialize ?? ((value: unknown) => value)) as never,
    parseValue: (value) => {
      if (!valid(value)) throw new GraphQLError(`${name} ${ajv.errorsText(valid.errors, { dataVar: 'it' })}.`);
      if (malformed(value)) throw new GraphQLError(`${name} has a character that cannot be stored.`);
      return (parse ? parse(value as never) : value) as never;
    },
  });
}

const text = (minLength: number, maxLength: number, more: object = {}) => ({
  type: 'string',
  minLength,
  maxLength,
  ...more,
});

scalar(
  'DateTime',
  'A time, RFC 3339 in UTC with milliseconds.',
  { type: 'string', format: 'date-time', maxLength: 35 },
  {
    parse: (value: string) => {
      const time = new Date(value);
      // RFC 3339 has leap seconds, which no clock of ours can tell.
      if (Number.isNaN(time.getTime())) throw new GraphQLError('A time with a leap second cannot be told.');
      return time;
    },
    serialize: (value: Date) => value.toISOString(),
  },
);
scalar(
  'Date',
  'A day, RFC 3339 full-date, such as 2026-11-21.',
  { type: 'string', format: 'date', pattern: '^2[0-9]{3}-', maxLength: 10 },
  {
    parse: (value: string) => new Date(`${value}T00:00:00Z`),
    serialize: (value: Date) => value.toISOString().slice(0, 10),
  },
);
scalar('AuditAction', 'An action of the audit log: the type of an event, or api.request.', {
  type: 'string',
  maxLength: 64,
  pattern: '^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$',
});
scalar(
  'Usd',
  'An amount in US dollars.',
  { type: 'number', minimum: -1e9, maximum: 1e9 },
  { parse: microsFromUsd, serialize: usdFromMicros },
);
scalar(
  'TopUpAmount',
  'An amount in US dollars that can be topped up, with at most two decimals.',
  {
    type: 'number',
    minimum: 30,
    maximum: 10_000,
    'x-error': { minimum: 'amount_too_low', maximum: 'amount_too_high' },
  },
  {
    parse: (usd: number) => {
      const micros = microsFromUsd(usd);
      if (micros % 10_000n !== 0n) throw new GraphQLError('An amount has at most two decimals.');
      return micros;
    },
    serialize: usdFromMicros,
  },
);
scalar('JSON', 'Any JSON value.', {});
const LABEL_KEY = '[a-z0-9]([a-z0-9_./-]{0,61}[a-z0-9])?';
scalar('Labels', 'Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63.', {
  type: 'object',
  maxProperties: 20,
  propertyNames: { pattern: `^${LABEL_KEY}$` },
  additionalProperties: { type: 'string', maxLength: 63 },
});
scalar(
  'LabelSelector',
  'Up to 20 terms key=value or key!=value with commas between them, all of which have to hold.',
  text(1, 2700, { pattern: `^${LABEL_KEY}!?=[^,]{0,63}(,${LABEL_KEY}!?=[^,]{0,63}){0,19}$` }),
);
scalar('ClientText', 'Text of up to 254 characters.', text(1, 254));
scalar('ClientUri', 'An absolute URI of up to 2048 characters.', text(1, 2048, { format: 'uri' }));
scalar('Code', 'A code of the catalog.', text(1, 32));
scalar('CoinCode', 'A code of a coin, in any case.', text(1, 32), { parse: (value: string) => value.toUpperCase() });
scalar('CurrentPassword', 'The password that the account has.', text(1, 128), {
  parse: (value: string) => value.normalize('NFKC'),
});
scalar('Cursor', 'The next_cursor of the page before.', text(1, 200));
scalar('Email', 'An email address.', text(3, 254, { format: 'email' }), {
  parse: (value: string) => value.toLowerCase(),
});
const HOSTNAME = text(1, 253, {
  pattern: '^(?!.*-(\\.|$))[a-zA-Z0-9][a-zA-Z0-9-]{0,62}(\\.[a-zA-Z0-9][a-zA-Z0-9-]{0,62})*$',
});
scalar('Hostname', 'A name of a host (RFC 1123).', HOSTNAME, {
  parse: (value: string) => value.toLowerCase(),
});
scalar('ReverseDnsList', 'Names of up to 20 addresses, as {ip, ptr}.', {
  type: 'array',
  maxItems: 20,
  items: {
    type: 'object',
    properties: {
      ip: {
        ...text(2, 45, { pattern: '^[0-9a-fA-F:.]+$', anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }),
        description: 'An address of the server.',
      },
      ptr: { ...HOSTNAME, description: 'The name that it is to have.' },
    },
    required: ['ip', 'ptr'],
    additionalProperties: false,
  },
});
scalar('Empty', 'An object without members.', { type: 'object', maxProperties: 0 });
scalar(
  'EpochSeconds',
  'A time, in whole seconds since 1970 (UTC).',
  { type: 'integer' },
  {
    parse: (seconds: number) => new Date(seconds * 1000),
    serialize: (value: Date) => Math.floor(value.getTime() / 1000),
  },
);
scalar(
  'EventFilter',
  'Names of events: a list, or a string with commas.',
  { anyOf: [text(1, 2048), { type: 'array', minItems: 1, maxItems: 50, items: text(1, 64) }] },
  {
    parse: (value: string | string[]) =>
      typeof value === 'string' ? value.split(',').map((name) => name.trim()) : value,
    serialize: (value: string[]) => value.join(','),
  },
);
const NETWORKS_MAX = 20;
scalar(
  'IpAllowlist',
  'Up to 20 networks in CIDR notation, IPv4 or IPv6, as a list or as text with commas.',
  {
    anyOf: [
      { type: 'array', maxItems: NETWORKS_MAX, items: text(2, 49) },
      { type: 'string', maxLength: 1100 },
    ],
  },
  {
    parse: (value: string[] | string) => {
      const given = Array.isArray(value) ? value : value.split(',').filter((one) => one.trim());
      const networks = given.map(networkFrom);
      if (networks.length > NETWORKS_MAX || networks.includes(undefined))
        throw new GraphQLError('ip_allowlist must be up to 20 networks such as 203.0.113.0/24 or 2001:db8::/32.');
      return networks;
    },
  },
);
scalar('KeyName', 'A name for humans, of up to 120 characters.', text(1, 120));
scalar('OauthParameter', 'A parameter of OAuth, of up to 4096 characters.', text(1, 4096));
scalar('PageLimit', 'How many entries a page has.', { type: 'integer', minimum: 1, maximum: 200 });
scalar('Password', 'A password of 8 to 128 characters.', text(8, 128, { 'x-error': { minLength: 'weak_password' } }), {
  parse: (value: string) => value.normalize('NFKC'),
});
scalar('PublicKey', 'One line of an OpenSSH public key file.', text(1, 16_384));
scalar('RootPassword', 'A password for root, of 12 to 72 characters.', text(12, 72));
scalar('ScopeList', 'One or more of read, servers, billing and full, separated by spaces.', {
  type: 'string',
  maxLength: 64,
  pattern: '^(read|servers|billing|full)( (read|servers|billing|full))*$',
});
scalar(
  'SpendLimit',
  'An amount in US dollars that can be spent.',
  { type: 'number', minimum: 0, maximum: 1e9 },
  { parse: microsFromUsd, serialize: usdFromMicros },
);
scalar('SshKeyIds', 'Ids of up to 20 SSH keys.', {
  type: 'array',
  maxItems: 20,
  uniqueItems: true,
  items: text(1, 64),
});
scalar('Token', 'A token as the service gave it.', text(1, 200));
scalar(
  'TotpCode',
  'A code of the authenticator (six digits), or a recovery code (xxxx-xxxx).',
  text(6, 9, { pattern: '^([0-9]{6}|[0-9a-zA-Z]{4}-[0-9a-zA-Z]{4})$' }),
);
scalar('UserData', 'cloud-init user data, up to 64 KiB.', text(1, 65_536));
scalar('WaitSeconds', 'How long to wait, in seconds.', { type: 'integer', minimum: 0, maximum: 25 });
scalar('AlertDays', 'A number of days, 0 to 30.', { type: 'integer', minimum: 0, maximum: 30 });
scalar('Ed25519Key', 'An Ed25519 key, as JWK or base64.', text(43, 512));
scalar(
  'HttpsUrl',
  'An https URL without credentials.',
  text(9, 2048, { format: 'uri', pattern: '^https://[^/@]+(/|$)' }),
);
scalar('Paragraph', 'A text of up to 1,000 characters.', text(1, 1000));
scalar('Slug', 'A short name for addresses: 3 to 40 of a-z, 0-9 and -.', text(3, 40, { pattern: '^[a-z0-9-]{3,40}$' }));
scalar('Tags', 'Up to 20 tags.', { type: 'array', maxItems: 20, items: text(1, 40) });
scalar('Title', 'A name of up to 80 characters.', text(1, 80));
scalar('Line', 'A line of text.', text(1, 255));
scalar('Prose', 'A text of up to 16 KiB.', text(1, 16_384));
const country = { type: 'string', pattern: '^[A-Z]{2}$' };
const optional = (schema: object) => ({ anyOf: [schema, { type: 'null' }] });
const closed = (properties: object) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
scalar(
  'PeeringDocument',
  'What is published of the network, in the words of PeeringDB.',
  closed({
    asn: optional({ type: 'integer', minimum: 1, maximum: 2_147_483_647 }),
    name: text(1, 255),
    irrAsSet: optional(text(1, 255)),
    policy: text(1, 255),
    policyUrl: optional(text(1, 2048, { format: 'uri' })),
    nocEmail: optional(text(3, 254, { format: 'email' })),
    peeringdbUrl: optional(text(1, 2048, { format: 'uri' })),
    infoPrefixes4: optional({ type: 'integer', minimum: 0, maximum: 10_000_000 }),
    infoPrefixes6: optional({ type: 'integer', minimum: 0, maximum: 10_000_000 }),
    exchanges: {
      type: 'array',
      maxItems: 500,
      items: closed({
        name: text(1, 255),
        city: text(1, 255),
        country,
        speedMbps: { type: 'integer', minimum: 0, maximum: 100_000_000 },
        ipv4: optional(text(7, 15, { format: 'ipv4' })),
        ipv6: optional(text(2, 45, { format: 'ipv6' })),
        isRsPeer: { type: 'boolean' },
        operational: { type: 'boolean' },
      }),
    },
    facilities: { type: 'array', maxItems: 500, items: closed({ name: text(1, 255), city: text(1, 255), country }) },
  }),
);
scalar('WebhookDescription', 'A description for humans, of up to 255 characters.', text(1, 255));
scalar(
  'WebhookUrl',
  'An https URL of up to 2048 characters.',
  text(1, 2048, { 'x-error': { minLength: 'invalid_url', maxLength: 'invalid_url' } }),
);
scalar('X402Payment', 'A payment of x402: JSON in base64.', { type: 'string', maxLength: 16_384 });
