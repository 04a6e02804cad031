/** The digests of the audit log that the service publishes, and the keys that sign them. */
import { createHash, createPublicKey, generateKeyPairSync, sign as signBy, verify } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { proveAudit } from '../../entities/history/audit-proof.ts';
import { signHeads } from '../../entities/history/audit-sign.ts';
import { FIND_PUBLISHED, publicKeyOf, publishedOf, signingKeys } from '../../entities/history/audit-signature.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import { Vault } from '../../entities/secrets.ts';
import { asSuperuser, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { openShop } from '../setup/shop.ts';
import { VAULT } from '../setup/vault.ts';

const shop = await openShop(atEnd);
const { db } = shop;
beforeEach(() => truncate(db, 'audit_entry, audit_link, audit_unlinked, audit_signature'));

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const keysOf = (vault: Vault) => signingKeys(vault).map(publicKeyOf);
const proveBy = (vault: Vault, digests: string[] = []) => proveAudit(db, { publicKeys: keysOf(vault), digests });

async function write(accountId: string): Promise<void> {
  await db.transaction((tx) => record(tx, accountId, accountId, { type: 'account.resumed', actor: SYSTEM }));
  await shop.tick('audit-links');
}
async function sign(vault = VAULT) {
  await asSuperuser(db, `update audit_signature set signed_at = signed_at - interval '2 days'`);
  const [made] = await db.transaction((tx) => signHeads(tx, signingKeys(vault)));
  return made!;
}

describe('A published digest of the audit log', () => {
  it('has a text that a stranger can check, and names no account', async () => {
    const accountId = newId('acct');
    await write(accountId);
    const first = await sign();
    await write(accountId);
    const second = await sign();
    expect([first.number, second.number]).toEqual([1n, 2n]);
    expect(second.sha256).toBe(sha256(second.signedText));
    expect(second.signedText).toContain(`previous ${first.sha256}\n`);
    // Strangers ask for it, so the process does not even read the heads, which may be many.
    expect((await FIND_PUBLISHED.first(db, [2, [], null]))!.signedText).toBe(second.signedText);
    expect([first.previousSha256, second.previousSha256]).toEqual([null, first.sha256]);
    expect(second.signedText + first.signedText).not.toContain(accountId);
    const key = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(second.publicKey, 'hex').toString('base64url') },
      format: 'jwk',
    });
    expect(verify(null, Buffer.from(second.signedText), key, Buffer.from(second.signature, 'hex'))).toBe(true);
  });

  it('shows that somebody with SECRET_KEY and the database wrote the log anew', async () => {
    const accountId = newId('acct');
    await write(accountId);
    const kept = await sign();
    await write(accountId);
    await sign();
    expect(await proveBy(VAULT, [kept.sha256])).toMatchObject({ faults: [], missingDigests: [] });
    await asSuperuser(db, `update audit_entry set action = 'server.deleted'`);
    await truncate(db, 'audit_link, audit_signature');
    await asSuperuser(db, 'insert into audit_unlinked select id from audit_entry');
    await shop.tick('audit-links');
    await sign();
    await sign();
    expect(await proveBy(VAULT)).toMatchObject({ faults: [], missingDigests: [] });
    expect((await proveBy(VAULT, [kept.sha256])).missingDigests).toEqual([kept.sha256]);
  });

  it('belongs to its heads: other heads under the same signed text are a fault', async () => {
    await write(newId('acct'));
    const { sha256: digest } = await sign();
    const wrong = { accountId: null, entryId: null, detail: 'Signature 1: it does not fit its text.' };
    for (const change of [
      `split_part(signed_text, E'\\n\\n', 1) || E'\\n\\n'`,
      `split_part(signed_text, E'\\n\\n', 1) || E'\\n'`,
    ]) {
      await asSuperuser(db, `update audit_signature set signed_text = ${change}`);
      const { faults } = await proveBy(VAULT, [digest]);
      expect(faults).toContainEqual(wrong);
    }
  });

  it('follows at once on a signature of the first versions, which signed the heads as well', async () => {
    const accountId = newId('acct');
    await write(accountId);
    await sign();
    const [link] = await db.query<{ hash: string; at: Date }>(
      `select encode(hash, 'hex') as hash, created_at as at from audit_link join audit_entry on id = entry_id`,
    );
    const key = signingKeys(VAULT)[0];
    const head = `${accountId} 1 ${link!.hash} ${link!.at.toISOString()}`;
    const header = `freehold audit heads 1\nprevious \nat ${link!.at.toISOString()}\nkey ${keysOf(VAULT)[0]!.toString('hex')}`;
    const text = `${header}\n${head}\n`;
    await asSuperuser(db, 'update audit_signature set signed_text = $1, signature = $2', [
      text,
      signBy(null, Buffer.from(text), key),
    ]);
    const [first] = await db.query<Parameters<typeof publishedOf>[0]>('select * from audit_signature');
    expect(publishedOf(first!)).toBeNull();
    expect(await FIND_PUBLISHED.first(db, [null, keysOf(VAULT), null])).toBeUndefined();
    await shop.tick('audit-signature');
    expect(await proveBy(VAULT, [sha256(text)])).toMatchObject({ signatures: 2, faults: [], missingDigests: [] });
  });
});

describe('After a new SECRET_KEY', () => {
  const [A, B, C] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2), Buffer.alloc(32, 3)];

  it('the signatures of the keys before it stay those of the service', async () => {
    await write(newId('acct'));
    await sign(new Vault(A));
    await sign(new Vault(B, A));
    await sign(new Vault(B));
    await sign(new Vault(C, B));
    expect(await proveBy(new Vault(C))).toMatchObject({ signatures: 4, foreignSignatures: 0, faults: [] });
    // Nothing vouches for the newer keys.
    expect(await proveBy(new Vault(A))).toMatchObject({ signatures: 4, foreignSignatures: 3 });
  });

  it('a signature of a key that no key of the service names is foreign', async () => {
    await write(newId('acct'));
    await sign(new Vault(B, A));
    await sign(new Vault(C, B));
    expect(await proveBy(new Vault(B))).toMatchObject({ signatures: 2, foreignSignatures: 1 });
  });

  it('a key that a forged text names stays foreign', async () => {
    await write(newId('acct'));
    const thief = generateKeyPairSync('ed25519').privateKey;
    await sign(new Vault(B));
    await asSuperuser(
      db,
      `update audit_signature set signed_text = replace(signed_text, E'\\nheads', $1 || E'\\nheads')`,
      [`\nother ${publicKeyOf(thief).toString('hex')}`],
    );
    await db.transaction((tx) => signHeads(tx, [thief]));
    expect(await proveBy(new Vault(B))).toMatchObject({
      signatures: 2,
      foreignSignatures: 1,
      faults: [
        {
          detail: 'Signature 2: neither SECRET_KEY nor a later signature names its key. Is SECRET_KEY the current one?',
        },
        { detail: 'Signature 1: it does not fit its text.' },
      ],
    });
  });
});
