/** Orders and servers, and the hosts and networks of the operator. */
import { GraphQLError } from 'graphql';
import { scalar, text } from './scalar.ts';

scalar('Code', 'A code of the catalog.', text(1, 32), { example: 'vps-1' });
const LABEL_KEY = '[a-z0-9]([a-z0-9_./-]{0,61}[a-z0-9])?';
scalar(
  'Labels',
  'Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63.',
  {
    type: 'object',
    maxProperties: 20,
    propertyNames: { pattern: `^${LABEL_KEY}$` },
    additionalProperties: { type: 'string', maxLength: 63 },
  },
  { example: { env: 'prod' } },
);
scalar(
  'LabelSelector',
  'Up to 20 terms key=value or key!=value, separated by commas. All terms must match.',
  text(1, 2700, { pattern: `^${LABEL_KEY}!?=[^,]{0,63}(,${LABEL_KEY}!?=[^,]{0,63}){0,19}$` }),
  { example: 'env=prod' },
);
const HOSTNAME = text(1, 253, {
  pattern: '^(?!.*-(\\.|$))[a-zA-Z0-9][a-zA-Z0-9-]{0,62}(\\.[a-zA-Z0-9][a-zA-Z0-9-]{0,62})*$',
});
scalar('Hostname', 'A name of a host (RFC 1123).', HOSTNAME, {
  example: 'web-1.example.com',
  parse: (value: string) => value.toLowerCase(),
});
scalar('ReverseDnsList', 'Reverse DNS names of up to 20 addresses, as {ip, ptr}.', {
  type: 'array',
  maxItems: 20,
  items: {
    type: 'object',
    properties: {
      ip: {
        ...text(2, 45, { pattern: '^[0-9a-fA-F:.]+$', anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }),
        description: 'An address of the server.',
      },
      ptr: { ...HOSTNAME, description: 'The new name of the address.' },
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
const USER_DATA_BYTES_MAX = 65_536;
scalar('UserData', 'cloud-init user data, up to 64 KiB.', text(1, USER_DATA_BYTES_MAX), {
  parse: (value: string) => {
    if (Buffer.byteLength(value) > USER_DATA_BYTES_MAX)
      throw new GraphQLError('The text has more than 64 KiB in UTF-8.');
    return value;
  },
});
scalar('WaitSeconds', 'The longest wait, in seconds.', { type: 'integer', format: 'int32', minimum: 0, maximum: 25 });

scalar('HostName', 'The name of a host in its engine.', text(1, 63, { pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$' }));
scalar('Amount', 'A whole number from 0 to 100,000,000.', {
  type: 'integer',
  format: 'int32',
  minimum: 0,
  maximum: 100_000_000,
});
scalar('Terabytes', 'Traffic in TB, up to 1,000,000.', { type: 'number', minimum: 0, maximum: 1e6 });
scalar('Latitude', 'Degrees north of the equator.', { type: 'number', minimum: -90, maximum: 90 });
scalar('Longitude', 'Degrees east of Greenwich.', { type: 'number', minimum: -180, maximum: 180 });
scalar('Overcommit', 'A factor of 0.1 to 100.', { type: 'number', minimum: 0.1, maximum: 100 });
scalar('Mac', 'A MAC address with colons.', text(17, 17, { pattern: '^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$' }));
scalar(
  'DiskName',
  'The name of a disk in /dev/disk/by-id, such as wwn-0x5000c500a1b2c3d4, or its serial number.',
  text(3, 144, { pattern: '^(/dev/disk/by-id/)?[A-Za-z0-9][A-Za-z0-9#+.:=@_-]{2,127}$' }),
);
scalar('IpAddress', 'An IPv4 or IPv6 address.', text(2, 45, { anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }));
scalar(
  'Cidr',
  'A network in CIDR notation, such as 192.0.2.0/24.',
  text(4, 49, { pattern: '^[0-9a-fA-F:.]+/[0-9]{1,3}$' }),
);
