/** The inputs of the public pages: the number of a digest, and the operator's document about the network. */
import { scalar, text } from './scalar.ts';

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
  'The public document about the network, with the terms of PeeringDB.',
  closed({
    asn: optional({ type: 'integer', format: 'int32', minimum: 1, maximum: 2_147_483_647 }),
    name: text(1, 255),
    irrAsSet: optional(text(1, 255)),
    policy: text(1, 255),
    policyUrl: optional(text(1, 2048, { format: 'uri' })),
    nocEmail: optional(text(3, 254, { format: 'email' })),
    peeringdbUrl: optional(text(1, 2048, { format: 'uri' })),
    infoPrefixes4: optional({ type: 'integer', format: 'int32', minimum: 0, maximum: 10_000_000 }),
    infoPrefixes6: optional({ type: 'integer', format: 'int32', minimum: 0, maximum: 10_000_000 }),
    exchanges: {
      type: 'array',
      maxItems: 500,
      items: closed({
        name: text(1, 255),
        city: text(1, 255),
        country,
        speedMbps: { type: 'integer', format: 'int32', minimum: 0, maximum: 100_000_000 },
        ipv4: optional(text(7, 15, { format: 'ipv4' })),
        ipv6: optional(text(2, 45, { format: 'ipv6' })),
        isRsPeer: { type: 'boolean' },
        operational: { type: 'boolean' },
      }),
    },
    facilities: { type: 'array', maxItems: 500, items: closed({ name: text(1, 255), city: text(1, 255), country }) },
  }),
);
scalar('DigestNumber', 'The number of a digest of the audit logs.', {
  type: 'integer',
  format: 'int32',
  minimum: 1,
  maximum: 2_147_483_647,
});
