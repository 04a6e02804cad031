import { describe, expect, it } from 'vitest';
import { networkCheck, networkFrom } from '../../../resolvers/accounts/auth/networks.ts';

describe('A network', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7/32'],
    [' 203.0.113.0/24 ', '203.0.113.0/24'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['::1', '::1/128'],
  ])('is read from %s', (text, network) => {
    expect(networkFrom(text)).toBe(network);
  });

  it.each(['', '/', '203.0.113.0/33', '2001:db8::/129', '203.0.113/24', '1.2.3.4/', '1.2.3.4/-1', '1.2.3.4/8/8'])(
    'is not %j',
    (text) => expect(networkFrom(text)).toBeUndefined(),
  );

  it.each(['localhost', '0x7f.1', '010.0.0.1', 'fe80::1%eth0', '1.2.3.4/ 8', '1.2.3.4/1e1'])(
    'is not %j either',
    (text) => expect(networkFrom(text)).toBeUndefined(),
  );

  it('contains its addresses in every spelling, and no others', () => {
    const allows = networkCheck(['203.0.113.0/24', '2001:db8::/32']);
    expect(['203.0.113.1', '203.0.113.255', '::ffff:203.0.113.1', '2001:db8:ffff::1'].map(allows)).toEqual(
      Array(4).fill(true),
    );
    expect(['203.0.114.1', '::ffff:203.0.114.1', '2001:db9::1', '::1', '', 'nonsense', null].map(allows)).toEqual(
      Array(7).fill(false),
    );
    expect(networkCheck([])(null)).toBe(true);
  });
});
