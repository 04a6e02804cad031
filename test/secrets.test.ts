import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { credentialKind, digest, KeyMissing, mintCredential, newMachinePassword, Vault } from '../entities/secrets.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const KINDS = ['live', 'at', 'rt', 'lt', 'cs'] as const;
const minted = Array.from({ length: 200 }, (_, i) => mintCredential(KINDS[i % KINDS.length]!));

describe('A credential', () => {
  it('has the published form, so secret scanners find it', () => {
    for (const credential of minted) expect(credential).toMatch(/^svc_(live|at|rt|lt|cs)_[0-9A-Za-z]{38}$/);
  });

  it('is recognised with its kind, for each minted one', () => {
    for (let i = 0; i < 20_000; i++) {
      const kind = KINDS[i % KINDS.length]!;
      const credential = mintCredential(kind);
      if (credentialKind(credential) !== kind) throw new Error(`${credential} is not recognised`);
    }
    expect(credentialKind(mintCredential('op'))).toBe('op');
  });

  it('is refused with a single wrong character', () => {
    const accepted: string[] = [];
    for (const credential of minted)
      for (let at = 0; at < credential.length; at++)
        for (const character of `${BASE62}_- \n`) {
          const typo = credential.slice(0, at) + character + credential.slice(at + 1);
          if (typo !== credential && credentialKind(typo)) accepted.push(`${typo} for ${credential}`);
        }
    expect(accepted).toEqual([]);
  });

  it('is refused with a missing or doubled character, or two exchanged neighbours', () => {
    const accepted = minted.flatMap((credential) =>
      Array.from(credential).flatMap((character, at) => {
        const [before, after] = [credential.slice(0, at), credential.slice(at + 1)];
        return [before + after, before + character + character + after, before + after[0] + character + after.slice(1)]
          .filter((typo) => typo !== credential && credentialKind(typo))
          .map((typo) => `${typo} for ${credential}`);
      }),
    );
    expect(accepted).toEqual([]);
  });

  it.each([
    ['nothing', ''],
    ['a word', 'secret'],
    ['a prefix alone', 'svc_live_'],
    ['the right form with a random checksum', `svc_live_${'0'.repeat(38)}`],
    ['an unknown kind', minted[0]!.replace('_live_', '_test_')],
    ['another kind', minted[1]!.replace('_at_', '_rt_')],
    ['space around it', ` ${minted[0]}`],
    ['a line break after it', `${minted[0]}\n`],
    ['capitals', minted[0]!.toUpperCase()],
    ['a megabyte', 'svc_live_'.padEnd(1_000_000, '0')],
    ['characters beyond ASCII', `svc_live_${'é'.repeat(38)}`],
  ])('is not %s', (_, garbage) => {
    expect(credentialKind(garbage)).toBeUndefined();
  });

  it('is stored as 32 bytes that reveal nothing', () => {
    expect(digest(minted[0]!)).toHaveLength(32);
    expect(digest(minted[0]!)).toEqual(digest(minted[0]!));
    expect(new Set(minted.map((credential) => digest(credential).toString('hex'))).size).toBe(minted.length);
  });

  it('never repeats, and uses all characters equally', () => {
    expect(new Set(minted).size).toBe(minted.length);
    const counts = new Map<string, number>();
    for (const character of Array.from({ length: 5000 }, newMachinePassword).join(''))
      counts.set(character, (counts.get(character) ?? 0) + 1);
    expect([...counts.keys()].sort().join('')).toBe(BASE62);
    // The mean is 1935, and the standard deviation 44. A modulo would give the first eight characters a quarter more.
    for (const count of counts.values()) expect(Math.abs(count - 1935)).toBeLessThan(350);
  });
});

it('A machine password has 24 characters that need no quoting', () => {
  expect(newMachinePassword()).toMatch(/^[0-9A-Za-z]{24}$/);
});

describe('A sealed value', () => {
  const vault = new Vault(randomBytes(32));
  const CONTEXT = 'server.root_password.srv_1';
  const PLAINTEXT = 'pässword 🔑';
  const sealed = vault.seal(PLAINTEXT, CONTEXT);

  it.each(['', 'a', PLAINTEXT, 'x'.repeat(100_000)])('opens in its own context', (plaintext) => {
    expect(vault.open(vault.seal(plaintext, CONTEXT), CONTEXT)).toBe(plaintext);
  });

  it('differs each time, and does not contain the value', () => {
    expect(vault.seal(PLAINTEXT, CONTEXT)).not.toEqual(sealed);
    expect(sealed.includes(PLAINTEXT)).toBe(false);
  });

  it('does not open in another row, column or table', () => {
    for (const context of ['server.root_password.srv_2', 'server.user_data.srv_1', 'account.root_password.srv_1', ''])
      expect(() => vault.open(sealed, context)).toThrow();
  });

  it('does not open with a flipped bit', () => {
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const flipped = Buffer.from(sealed);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(() => vault.open(flipped, CONTEXT)).toThrow();
    }
  });

  it('does not open if it is cut at either end, or extended', () => {
    for (let length = 0; length < sealed.length; length++) {
      expect(() => vault.open(sealed.subarray(0, length), CONTEXT)).toThrow();
      expect(() => vault.open(sealed.subarray(sealed.length - length), CONTEXT)).toThrow();
    }
    expect(() => vault.open(Buffer.concat([sealed, Buffer.of(0)]), CONTEXT)).toThrow();
  });

  it('does not open with another key', () => {
    expect(() => new Vault(randomBytes(32)).open(sealed, CONTEXT)).toThrow();
  });

  it('needs a key of 32 bytes', () => {
    for (const length of [0, 16, 31, 33]) expect(() => new Vault(randomBytes(length))).toThrow(/32 bytes/);
  });
});

describe('A value that is sealed for a caller', () => {
  const [before, after] = [randomBytes(32), randomBytes(32)];
  const first = new Vault(before);
  const sealed = first.sealFor('a key of theirs', 'an answer', 'row 1');

  it('opens with the secret of the caller, in its context', () => {
    expect(first.openFor('a key of theirs', sealed, 'row 1')).toBe('an answer');
    expect(() => first.openFor('another', sealed, 'row 1')).toThrow();
    expect(() => first.openFor('a key of theirs', sealed, 'row 2')).toThrow();
    expect(first.open(sealed, 'row 1')).not.toContain('an answer');
  });

  it('gets another outer seal without that secret', () => {
    const both = new Vault(after, before);
    const again = both.seal(both.open(sealed, 'row 1'), 'row 1');
    expect(new Vault(after).openFor('a key of theirs', again, 'row 1')).toBe('an answer');
    expect(() => first.open(again, 'row 1')).toThrow(KeyMissing);
  });
});

describe('A vault with several keys', () => {
  const keys = [randomBytes(32), randomBytes(32)] as [Buffer, Buffer];

  it('seals with the first, and opens values of all', () => {
    const [one, two] = [new Vault(keys[0]), new Vault(keys[1])];
    const both = new Vault(...keys);
    expect(one.open(both.seal('x', 'c'), 'c')).toBe('x');
    expect(both.open(two.seal('x', 'c'), 'c')).toBe('x');
    expect(() => one.open(two.seal('x', 'c'), 'c')).toThrow(/SECRET_KEY_PREVIOUS/);
    expect(both.deriveAll('p')).toEqual([one.derive('p'), two.derive('p')]);
  });

  it('names a key by an id that is no part of it', () => {
    const { keyId } = new Vault(keys[0]);
    expect(keyId).toHaveLength(8);
    expect(keys[0].includes(keyId)).toBe(false);
  });
});
