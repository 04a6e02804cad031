import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseSshPublicKey } from '../../entities/accounts/ssh-public-key.ts';
import {
  codeOf,
  detailOf,
  ED25519,
  ecdsa,
  ed25519,
  fields,
  fromHex,
  keyLine,
  line,
  MODULUS,
  modulusOf,
  natural,
  newEd25519,
  P256,
  P384,
  P521,
  point,
  rocaModulus,
  rsa,
  SK_ECDSA,
  SK_ED25519,
} from './ssh-key-lines.ts';

describe('An OpenSSH public key', () => {
  it.each([
    ['ed25519', ed25519(), 256],
    ['ECDSA on the curve of 256 bits', ecdsa(256, point(P256)), 256],
    ['ECDSA on the curve of 384 bits', ecdsa(384, point(P384)), 384],
    ['ECDSA on the curve of 521 bits', ecdsa(521, point(P521)), 521],
    ['ed25519 of a security token', SK_ED25519, 256],
    ['ECDSA of a security token', SK_ECDSA, 256],
    ['RSA of 2048 bits', rsa(MODULUS), 2048],
    ['RSA of 2049 bits', rsa(modulusOf(2049)), 2049],
    ['RSA of 4096 bits', rsa(modulusOf(4096)), 4096],
    ['RSA of 8192 bits', rsa(modulusOf(8192)), 8192],
    ['RSA with the exponent 3', rsa(MODULUS, 3n), 2048],
  ])('is accepted: %s', (_, given, bits) => {
    const [type, base64] = given.split(' ');
    const digest = createHash('sha256').update(Buffer.from(base64!, 'base64')).digest('base64');
    expect(parseSshPublicKey(given)).toEqual({
      type,
      bits,
      fingerprint: `SHA256:${digest.replace(/=+$/, '')}`,
      publicKey: given,
      comment: '',
    });
  });

  it.each([
    ['no comment', '', ''],
    ['a comment', ' ada@laptop', 'ada@laptop'],
    ['a comment of several words', '\t ada  at home ', 'ada  at home'],
    ['a comment in any script', ' Zoë 東京 🔑', 'Zoë 東京 🔑'],
    ['a comment that speaks of private keys', ' not my private key', 'not my private key'],
    ['a comment with invisible characters and changes of direction', ' a\u200b\u202eb\ud800\u2028c\ufeff', 'abc'],
    ['a comment with a tab', ' a\tb', 'ab'],
    ['a comment that is too long', ` ${'ö'.repeat(200)}`, 'ö'.repeat(120)],
    ['the line break of a file', '\r\n', ''],
  ])('gives a printable comment, from %s', (_, added, comment) => {
    expect(parseSshPublicKey(ed25519() + added)).toMatchObject({ comment, publicKey: ed25519() });
  });

  it('is on its curve: the parser refuses none of 500 new ed25519 keys', () => {
    for (let i = 0; i < 500; i++) expect(codeOf(ed25519(newEd25519()))).toBe('accepted');
  });

  it('may have white space around it, as after copying', () => {
    expect(parseSshPublicKey(`\ufeff \n${ed25519().replace(' ', ' \t ')}\r\n\n`).publicKey).toBe(ed25519());
  });
});

describe('A private key', () => {
  const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const openSsh = `openssh-key-v1\0${fields('none', 'none', '')}`;
  const armour = (kind: string) => `-----BEGIN ${kind}-----\n${openSsh}\n-----END ${kind}-----\n`;
  const encryption = { cipher: 'aes-256-cbc', passphrase: 'secret' };
  it.each([
    ['of OpenSSH', armour('OPENSSH PRIVATE KEY')],
    ['of OpenSSH without its armour', Buffer.from(openSsh).toString('base64')],
    ['of OpenSSH in the place of a public key', `ssh-ed25519 ${Buffer.from(openSsh).toString('base64')}`],
    ['in PEM', pem.export({ type: 'sec1', format: 'pem' }).toString()],
    ['in PKCS #8', pem.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['in encrypted PKCS #8', pem.export({ type: 'pkcs8', format: 'pem', ...encryption }).toString()],
    ['in encrypted PEM', pem.export({ type: 'sec1', format: 'pem', ...encryption }).toString()],
    ['of PuTTY', 'PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPublic-Lines: 2\n'],
    ['of PuTTY without its first line', 'Public-Lines: 2\nAAAA\nPrivate-Lines: 1\nAAAA\n'],
    ['of ssh.com', armour('SSH2 ENCRYPTED PRIVATE KEY')],
    ['of SSH 1', 'SSH PRIVATE KEY FILE FORMAT 1.1\n\0\0'],
    ['in a comment', `${ed25519()} -----BEGIN OPENSSH PRIVATE KEY-----`],
    ['after a public key', `${ed25519()}\n${armour('OPENSSH PRIVATE KEY')}`],
    ['that is far too long', armour('RSA PRIVATE KEY').repeat(500)],
  ])('is recognised %s', (_, text) => {
    expect(codeOf(text)).toBe('private_key_rejected');
    expect(detailOf(text)).toMatch(/replace this key pair/);
  });
});

describe('A weak key', () => {
  it.each([
    ['RSA of 1024 bits', rsa(modulusOf(1024))],
    ['RSA of 2047 bits', rsa(modulusOf(2047))],
    ['RSA of a few bits', rsa(15n)],
    ['RSA of the chips with CVE-2017-15361 (ROCA)', rsa(rocaModulus())],
    ['DSA', keyLine('ssh-dss', natural(MODULUS), natural(257n), natural(5n), natural(7n))],
  ])('is refused as such: %s', (_, text) => {
    expect(codeOf(text)).toBe('key_too_weak');
  });
});

describe('Anything else', () => {
  const [, base64 = ''] = ed25519().split(' ');
  const pem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const blob = (type: string, ...rest: (string | Buffer)[]) => fields(type, ...rest);
  const sk = (...rest: (string | Buffer)[]) => keyLine('sk-ssh-ed25519@openssh.com', ED25519, ...rest);
  const offCurve = Buffer.from(point(P256));
  offCurve[40]! ^= 1;
  // Seven is the second y, after two, without a point on the curve.
  const offEdwards = Buffer.concat([Buffer.of(7), Buffer.alloc(31)]);
  const compressed = Buffer.concat([Buffer.of(2 + (P256.y.at(-1)! & 1)), P256.x]);
  const zeroBefore = (bytes: Buffer) => Buffer.concat([Buffer.of(0), bytes]);
  it.each([
    ['nothing', '', /one line/],
    ['white space', ' \n\t ', /one line/],
    ['words', 'my key', /one line/],
    ['a type alone', 'ssh-ed25519', /one line/],
    ['data alone', base64, /one line/],
    ['a key of SSH 1', '2048 65537 123456789 ada@laptop', /one line/],
    ['a public key in PEM', pem, /one line/],
    ['a public key of ssh.com', `---- BEGIN SSH2 PUBLIC KEY ----\n${base64}`, /one line/],
    ['an unknown type', keyLine('ssh-ed448', ED25519), /one of ssh-ed25519/],
    ['the name of a JavaScript property as type', keyLine('constructor', ED25519), /one of ssh-ed25519/],
    ['a type in capitals', line('SSH-ED25519', blob('ssh-ed25519', ED25519)), /one of ssh-ed25519/],
    ['a signature for a type', keyLine('rsa-sha2-512', natural(65537n), natural(MODULUS)), /one of ssh-ed25519/],
    ['a certificate', keyLine('ssh-ed25519-cert-v01@openssh.com', randomBytes(32), ED25519), /certificate/],
    ['options before the key', `no-pty ${ed25519()}`, /options/],
    ['options with quotes', `command="rm -rf /",no-pty ${ed25519()}`, /options/],
    ['a host before the key', `example.com ${ed25519()}`, /options/],
    ['two keys', `${ed25519()}\n${ed25519()}`, /exactly one key/],
    ['two keys with a CR between them', `${ed25519()}\r${ed25519()}`, /exactly one key/],
    ['a second line', `${ed25519()} ada\nPermitRootLogin yes`, /exactly one key/],
    ['a NUL', `${ed25519()} ada\0`, /control characters/],
    ['an escape sequence', `${ed25519()} \u001b[2J`, /control characters/],
    ['a non-breaking space', ed25519().replace(' ', '\u00a0'), /one line/],
    ['too long a line', `${ed25519()} ${'a'.repeat(20_000)}`, /at most 16384/],
    ['base64 with a foreign character', ed25519().replace('AAAA', 'AA*AA'), /base64/],
    ['base64 for URLs', ed25519(Buffer.alloc(32, 0xff)).replace(/\//g, '_'), /base64/],
    ['base64 without padding', SK_ED25519.replace('=', ''), /base64/],
    ['base64 with too much padding', `${ed25519()}==`, /base64/],
    ['base64 with unused bits', withUnusedBits(SK_ED25519), /base64/],
    ['no data', 'ssh-ed25519 = ada', /base64/],
    ['half a length', line('ssh-ed25519', Buffer.of(0, 0)), /too early/],
    ['a length of 4 GB', line('ssh-ed25519', Buffer.of(255, 255, 255, 255, 1)), /too early/],
    ['only a type in the data', keyLine('ssh-ed25519'), /too early/],
    ['a field cut short', line('ssh-ed25519', blob('ssh-ed25519', ED25519).subarray(0, -1)), /too early/],
    [
      'data of another type',
      line('ssh-ed25519', blob('ssh-rsa', natural(3n), natural(MODULUS))),
      /differs from the type/,
    ],
    [
      'a token under a plain type',
      sk('ssh:').replace('sk-ssh-ed25519@openssh.com', 'ssh-ed25519'),
      /differs from the type/,
    ],
    ['a field after an ed25519 key', keyLine('ssh-ed25519', ED25519, ''), /after the end/],
    ['a field after an RSA key', keyLine('ssh-rsa', natural(3n), natural(MODULUS), natural(3n)), /after the end/],
    ['a byte after the key', line('ssh-ed25519', Buffer.concat([blob('ssh-ed25519', ED25519), Buffer.of(0)])), /after/],
    ['a private key in the data', keyLine('ssh-ed25519', ED25519, randomBytes(64)), /after the end/],
    ['a field after the key of a token', sk('ssh:', ''), /after the end/],
    ['a token for the web', sk('https://example.com'), /did not make this key for SSH/],
    ['a token without its application', sk(), /too early/],
    ['a token with a long application', sk(`ssh:${'x'.repeat(61)}`), /more than 64 characters/],
    ['31 bytes of ed25519', ed25519(ED25519.subarray(1)), /32 bytes/],
    ['33 bytes of ed25519', ed25519(zeroBefore(ED25519)), /32 bytes/],
    ['an ed25519 key off its curve', ed25519(offEdwards), /point/],
    ['another curve than the type names', ecdsa(256, point(P384), 'nistp384'), /differs from the curve/],
    ['a point of another curve', ecdsa(256, point(P384)), /point/],
    ['a point off the curve', ecdsa(256, offCurve), /point/],
    ['a compressed point', ecdsa(256, compressed), /point/],
    ['the point at infinity', ecdsa(256, Buffer.of(0)), /point/],
    ['a point of zeros', ecdsa(256, Buffer.concat([Buffer.of(4), Buffer.alloc(64)])), /point/],
    ['RSA with the exponent 1', rsa(MODULUS, 1n), /exponent/],
    ['RSA with an even exponent', rsa(MODULUS, 65536n), /exponent/],
    ['RSA with an exponent of 65 bits', rsa(MODULUS, 2n ** 64n + 1n), /exponent/],
    ['RSA with an even modulus', rsa(MODULUS - 1n), /small factor/],
    ['RSA with a modulus that 3 divides', rsa(MODULUS - (MODULUS % 3n)), /small factor/],
    ['RSA of 8193 bits', rsa(modulusOf(8193)), /at most 8192/],
    ['RSA with a leading zero', keyLine('ssh-rsa', natural(3n), zeroBefore(natural(MODULUS))), /malformed number/],
    ['RSA with a negative modulus', keyLine('ssh-rsa', natural(3n), natural(MODULUS).subarray(1)), /malformed number/],
    ['RSA without a modulus', keyLine('ssh-rsa', natural(3n), ''), /malformed number/],
    ['RSA with a modulus of zero', keyLine('ssh-rsa', natural(3n), Buffer.of(0)), /malformed number/],
  ])('is refused with the reason: %s', (_, text, reason) => {
    expect(codeOf(text)).toBe('invalid_public_key');
    expect(detailOf(text)).toMatch(reason);
  });

  it.each([
    '0100000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000080',
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0000000000000000000000000000000000000000000000000000000000000080',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  ])('is refused as an ed25519 point of low order or in a second spelling: %s', (hex) => {
    expect(codeOf(ed25519(fromHex(hex)))).toBe('invalid_public_key');
  });

  it('is never repeated in the refusal', () => {
    const secret = randomBytes(20).toString('base64url');
    for (const text of [secret, `${secret} ${secret}`, `ssh-ed25519 ${secret} ${secret}`, `${ed25519()}\n${secret}`])
      expect(detailOf(text)).not.toContain(secret);
    expect(detailOf(keyLine('ssh-ed25519', secret))).not.toContain(secret);
    expect(detailOf(keyLine('ecdsa-sha2-nistp256', secret, secret))).not.toContain(secret);
    expect(detailOf(keyLine('sk-ssh-ed25519@openssh.com', ED25519, secret))).not.toContain(secret);
    expect(detailOf(`${ed25519()} PRIVATE KEY ${secret}`)).not.toContain(secret);
  });
});

/** Sets unused bits in the last character of padded base64. */
function withUnusedBits(text: string) {
  return text.replace(/(.)=$/, (_, last: string) => `${String.fromCharCode(last.charCodeAt(0) + 1)}=`);
}
