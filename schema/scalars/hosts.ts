import { scalar, text } from './scalar.ts';

scalar('HostName', 'A host as its engine calls it.', text(1, 63, { pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$' }));
scalar('Amount', 'How many of something, up to a hundred million.', {
  type: 'integer',
  format: 'int32',
  minimum: 0,
  maximum: 100_000_000,
});
scalar('Overcommit', 'A factor of 0.1 to 100.', { type: 'number', minimum: 0.1, maximum: 100 });
scalar('Mac', 'A MAC address with colons.', text(17, 17, { pattern: '^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$' }));
scalar(
  'BlockDevice',
  'A device such as /dev/nvme0n1.',
  text(6, 205, { pattern: '^/dev/[A-Za-z0-9/_.:-]{1,200}$', not: { pattern: '\\.\\.' } }),
);
scalar('IpAddress', 'An IPv4 or IPv6 address.', text(2, 45, { anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }));
scalar(
  'Cidr',
  'A network in CIDR notation, such as 192.0.2.0/24.',
  text(4, 49, { pattern: '^[0-9a-fA-F:.]+/[0-9]{1,3}$' }),
);
