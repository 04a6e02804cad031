/**
 * Every scalar is a JSON Schema: the same object is the check of inputs, the description in OpenAPI, and the one that
 * MCP clients see. `x-error` names the code of the catalogue for a keyword that fails.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { GraphQLError } from 'graphql';
import { microsFromUsd, usdFromMicros } from '../entities/money.ts';
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
    parse: (value: string) => new Date(value),
    serialize: (value: Date) => value.toISOString(),
  },
);
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
scalar('Labels', 'Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63.', {
  type: 'object',
  maxProperties: 20,
  propertyNames: { pattern: '^[a-z0-9]([a-z0-9_./-]{0,61}[a-z0-9])?$' },
  additionalProperties: { type: 'string', maxLength: 63 },
});
scalar('Code', 'A code of the catalog.', text(1, 32));
scalar('CoinCode', 'A code of a coin, in any case.', text(1, 32), { parse: (value: string) => value.toUpperCase() });
scalar('Cursor', 'The next_cursor of the page before.', text(1, 200));
scalar('Email', 'An email address.', text(3, 254, { format: 'email' }), {
  parse: (value: string) => value.toLowerCase(),
});
scalar(
  'Hostname',
  'A name of a host (RFC 1123).',
  text(1, 253, { pattern: '^(?!.*-(\\.|$))[a-zA-Z0-9][a-zA-Z0-9-]{0,62}(\\.[a-zA-Z0-9][a-zA-Z0-9-]{0,62})*$' }),
  { parse: (value: string) => value.toLowerCase() },
);
scalar('KeyName', 'A name for humans, of up to 120 characters.', text(1, 120));
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
scalar('SshKeyIds', 'Ids of up to 20 SSH keys.', {
  type: 'array',
  maxItems: 20,
  uniqueItems: true,
  items: text(1, 64),
});
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
