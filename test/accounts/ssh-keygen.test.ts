import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseSshPublicKey } from '../../entities/accounts/ssh-public-key.ts';
import { atEnd } from '../setup/end.ts';
import { say } from '../setup/say.ts';
import { codeOf, detailOf, modulusOf, rsa, SK_ECDSA, SK_ED25519 } from './ssh-key-lines.ts';

const hasSshKeygen = (() => {
  try {
    execFileSync('ssh-keygen', ['-?'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
})();
if (!hasSshKeygen) say('The tests skip the keys of ssh-keygen, because ssh-keygen is not installed.');

const run = promisify(execFile);

describe.skipIf(!hasSshKeygen)('A key of ssh-keygen', () => {
  const kinds = ['ed25519 256', 'ecdsa 256', 'ecdsa 384', 'ecdsa 521', 'rsa 2048'];
  const fileOf = (kind: string) => join(folder, kind.replace(' ', '-'));
  const make = (kind: string, file: string, ...more: string[]) => {
    const [type = '', bits = '0'] = kind.split(' ');
    return run('ssh-keygen', ['-q', '-t', type, '-b', bits, '-N', '', '-C', 'ada@laptop', '-f', file, ...more]);
  };
  const printed = async (text: string, name: string) => {
    writeFileSync(join(folder, name), `${text}\n`);
    const { stdout } = await run('ssh-keygen', ['-lf', join(folder, name)]);
    const [bits, fingerprint] = stdout.split(' ');
    return { bits: Number(bits), fingerprint };
  };
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'freehold-ssh-'));
    await Promise.all(kinds.map((kind) => make(kind, fileOf(kind))));
  });
  atEnd(() => rmSync(folder, { recursive: true }));

  it.each(kinds)('is accepted with the size and fingerprint that ssh-keygen prints: %s', async (kind) => {
    const text = readFileSync(`${fileOf(kind)}.pub`, 'utf8');
    expect(parseSshPublicKey(text)).toMatchObject({
      ...(await printed(text, 'printed')),
      publicKey: text.split(' ').slice(0, 2).join(' '),
      comment: 'ada@laptop',
    });
  });

  it.each([
    ['ed25519 of a token', SK_ED25519],
    ['ECDSA of a token', SK_ECDSA],
    ['RSA of 8192 bits', rsa(modulusOf(8192))],
    ['RSA of 2049 bits', rsa(modulusOf(2049))],
    ['RSA of 3072 bits', rsa(modulusOf(3072))],
  ])('has the same fingerprint as a key made by hand: %s', async (_, text) => {
    expect(parseSshPublicKey(text)).toMatchObject(await printed(text, 'by-hand'));
  });

  it('is refused as a private key, in each of its formats', async () => {
    await make('ecdsa 256', join(folder, 'pem'), '-m', 'PEM');
    await make('ecdsa 256', join(folder, 'pkcs8'), '-m', 'PKCS8');
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', 'secret', '-f', join(folder, 'encrypted')]);
    for (const file of ['pem', 'pkcs8', 'encrypted', 'ed25519-256'])
      expect(codeOf(readFileSync(join(folder, file), 'utf8'))).toBe('private_key_rejected');
  });

  it('is refused as a certificate', async () => {
    await run('ssh-keygen', [
      '-q',
      '-s',
      fileOf('ed25519 256'),
      '-I',
      'ada',
      '-n',
      'root',
      `${fileOf('ecdsa 256')}.pub`,
    ]);
    expect(detailOf(readFileSync(`${fileOf('ecdsa 256')}-cert.pub`, 'utf8'))).toMatch(/certificate/);
  });
});
