import { describe, expect, it } from 'vitest';
import { allowedBy, networkCheck, networkFrom } from '../entities/networks.ts';

describe('A network', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7/32'],
    [' 203.0.113.0/24 ', '203.0.113.0/24'],
    ['203.0.113.7/24', '203.0.113.0/24'],
    ['203.0.113.7/08', '203.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['2001:0db8:0:0:0:0:0:1/33', '2001:db8::/33'],
    ['::1', '::1/128'],
    ['::/0', '::/0'],
    ['64:ff9b::192.0.2.7', '64:ff9b::c000:207/128'],
    ['::ffff:127.0.0.1', '127.0.0.1/32'],
    ['::FFFF:7f00:1/128', '127.0.0.1/32'],
    ['0:0:0:0:0:ffff:10.9.8.7/104', '10.0.0.0/8'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
  ])('is read from %s in its canonical form', (text, network) => {
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

  it.each(['::ffff:127.0.0.1/32', '::ffff:127.0.0.1/95', '::ffff:0:0/0'])(
    'is not %s, whose block has more than IPv4',
    (text) => expect(networkFrom(text)).toBeUndefined(),
  );

  it('contains its addresses in every spelling, and no others', () => {
    const allows = networkCheck(['203.0.113.0/24', '2001:db8::/32']);
    expect(
      ['203.0.113.1', '203.0.113.255', '::ffff:203.0.113.1', '::ffff:cb00:7101', '2001:db8:ffff::1%eth0'].map(allows),
    ).toEqual(Array(5).fill(true));
    expect(['203.0.114.1', '::ffff:203.0.114.1', '2001:db9::1', '::1', '', 'nonsense', null].map(allows)).toEqual(
      Array(7).fill(false),
    );
  });

  it('contains addresses to which a proxy adds a port', () => {
    const allows = networkCheck(['203.0.113.0/24', '2001:db8::/32']);
    expect(['203.0.113.1:4444', '[2001:db8::1]:443', '[2001:db8::1]'].map(allows)).toEqual(Array(3).fill(true));
    expect(['203.0.113.1:', '203.0.113.1:x', '[2001:db8::1', '[203.0.113.1:4'].map(allows)).toEqual(
      Array(4).fill(false),
    );
  });

  it('contains addresses of its own family only', () => {
    expect(['127.0.0.1', '::ffff:127.0.0.1', '::1'].map(networkCheck(['::/0']))).toEqual([false, false, true]);
    expect(['127.0.0.1', '::ffff:127.0.0.1', '::1'].map(networkCheck(['0.0.0.0/0']))).toEqual([true, true, false]);
    expect(['127.0.0.1', '::1'].map(networkCheck(['::ffff:127.0.0.1/32']))).toEqual([false, false]);
  });

  it('contains narrower networks', () => {
    const contains = networkCheck(['127.0.0.0/8', '2001:db8::/32']);
    expect(['127.0.0.0/8', '127.0.0.1/32', '2001:db8:1::/48'].map(contains)).toEqual(Array(3).fill(true));
    expect(['126.0.0.0/7', '0.0.0.0/0', '::ffff:127.0.0.1/32', '::/0', '2001:db8::/31'].map(contains)).toEqual(
      Array(5).fill(false),
    );
  });
});

describe('An allowlist', () => {
  it('allows every address if it is empty, and none if its entries are not networks', () => {
    expect(allowedBy([])(null)).toBe(true);
    expect(allowedBy(['::ffff:127.0.0.1/32'])('127.0.0.1')).toBe(false);
  });
});
