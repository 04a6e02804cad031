import { scalar, text } from './scalar.ts';

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
scalar('RootPassword', 'A password for root, of 12 to 72 characters.', text(12, 72));
scalar('SshKeyIds', 'Ids of up to 20 SSH keys.', {
  type: 'array',
  maxItems: 20,
  uniqueItems: true,
  items: text(1, 64),
});
scalar('UserData', 'cloud-init user data, up to 64 KiB.', text(1, 65_536));
scalar('WaitSeconds', 'How long to wait, in seconds.', { type: 'integer', format: 'int32', minimum: 0, maximum: 25 });
