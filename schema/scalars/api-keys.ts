import { GraphQLError } from 'graphql';
import { microsFromUsd, usdFromMicros } from '../../entities/money.ts';
import { networkFrom } from '../../resolvers/accounts/auth/networks.ts';
import { scalar, text } from './scalar.ts';

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
scalar(
  'SpendLimit',
  'An amount in US dollars that can be spent.',
  { type: 'number', minimum: 0, maximum: 1e9 },
  { parse: microsFromUsd, serialize: usdFromMicros },
);
