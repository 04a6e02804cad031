/** Strangers make accounts, and each has a line in a signed text. Neither the worker nor the proof has all lines in its memory. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { headsBackwards } from '../../entities/history/audit-lines.ts';
import { proveAudit } from '../../entities/history/audit-proof.ts';
import { signHeads } from '../../entities/history/audit-sign.ts';
import { provenPart, publicKeyOf, SIGNATURE_BEFORE, signingKeys } from '../../entities/history/audit-signature.ts';
import { readSignedPart } from '../../entities/history/audit-text.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import { asSuperuser, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { HOUR_MS, openShop } from '../setup/shop.ts';
import { VAULT } from '../setup/vault.ts';
import { addSignature, signedHeads } from './signed-lines.ts';

const shop = await openShop(atEnd);
const { db } = shop;
beforeEach(() => truncate(db, 'audit_entry, audit_link, audit_unlinked, audit_signature'));

const [key] = signingKeys(VAULT);
const prove = () => proveAudit(db, { publicKeys: [publicKeyOf(key)] });

/** Writes texts of so many days, each with so many accounts that are in no other one. */
async function signedDays(days: number, accounts: number): Promise<void> {
  let previous = '';
  for (let day = 1; day <= days; day++) {
    const signedAt = new Date(Date.now() - (days - day) * 24 * HOUR_MS - 25 * HOUR_MS);
    const heads = Array.from({ length: accounts }, (_, place) => ({
      accountId: `acct_${day}_${String(place).padStart(22, '0')}`,
      ...{ number: 1n, hash: 'a'.repeat(64), createdAt: signedAt, first: 1n },
    }));
    const since = day === 1 ? null : new Date(+signedAt - 24 * HOUR_MS);
    previous = await addSignature(db, key, { number: BigInt(day), previous, signedAt, since, heads });
  }
}

describe('The heads of very many accounts', () => {
  it('fit a thread with little memory, which signs the chains and finds that all were deleted', async () => {
    await signedDays(24, 20_000);
    const { url } = db.source.options as { url: string };
    const worker = new Worker(new URL('./audit-memory.ts', import.meta.url), {
      workerData: { url },
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    });
    // It rejects if the thread has no more memory.
    const [{ signed, details, hasMoreFaults }] = await once(worker, 'message');
    expect([signed, details.length, hasMoreFaults]).toEqual([1, 50, true]);
    expect(new Set(details)).toEqual(new Set(['The whole chain was deleted: it had 1 entries.']));
  });

  it('are read in steps, each once and the last first', async () => {
    await signedDays(1, 40_000);
    const row = (await SIGNATURE_BEFORE.first(db, [null, null]))!;
    const read: string[] = [];
    for await (const heads of headsBackwards(db, { ...row, part: provenPart(row)! })) {
      expect(heads.length).toBeLessThanOrEqual(2_000);
      for (const { accountId } of heads) read.push(accountId);
    }
    const written = (await signedHeads(db, 1n)).map(({ accountId }) => accountId);
    expect(read.toReversed().join()).toBe(written.join());
    expect(read).toHaveLength(40_000);
  });
});

describe('A day with more heads than a text may have', () => {
  const write = async (accountId: string) => {
    await db.transaction((tx) => record(tx, accountId, accountId, { type: 'account.resumed', actor: SYSTEM }));
    await shop.tick('audit-links');
  };

  it('has several texts, of which each follows the one before and protects its heads', async () => {
    const accounts = Array.from({ length: 5 }, () => newId('acct')).sort();
    for (const accountId of accounts) await write(accountId);
    const made = await db.transaction((tx) => signHeads(tx, signingKeys(VAULT), 2));
    expect(made.map(({ number }) => number)).toEqual([1n, 2n, 3n]);
    expect(made.map(({ previousSha256 }) => previousSha256)).toEqual([null, made[0]!.sha256, made[1]!.sha256]);
    const times = made.map(({ signedText }) => readSignedPart(signedText).since);
    expect(times).toEqual([null, made[0]!.signedAt, made[0]!.signedAt]);
    const heads = await Promise.all(made.map(({ number }) => signedHeads(db, number)));
    expect(heads.map((of) => of.map(({ accountId }) => accountId))).toEqual([
      accounts.slice(0, 2),
      accounts.slice(2, 4),
      accounts.slice(4),
    ]);
    expect(await prove()).toMatchObject({ signatures: 3, faults: [] });
    expect(await db.transaction((tx) => signHeads(tx, signingKeys(VAULT), 2))).toEqual([]);
    await asSuperuser(db, 'delete from audit_entry where account_id = $1', [accounts[0]]);
    await asSuperuser(db, 'delete from audit_link where account_id = $1', [accounts[0]]);
    const detail = 'The whole chain was deleted: it had 1 entries.';
    expect((await prove()).faults).toEqual([{ accountId: accounts[0], entryId: null, detail }]);
  });
});

describe('A signature', () => {
  it('takes the lines of no text that somebody changed for signed ones', async () => {
    const accountId = newId('acct');
    for (let i = 0; i < 2; i++) {
      await db.transaction((tx) => record(tx, accountId, accountId, { type: 'account.resumed', actor: SYSTEM }));
      await shop.tick('audit-links');
      if (i === 0) await db.transaction((tx) => signHeads(tx, signingKeys(VAULT)));
    }
    await asSuperuser(db, `update audit_link set linked_at = '2000-01-01'`);
    for (const junk of [`${accountId} 9 `, `${accountId} many `]) {
      const text = `replace(signed_text, $1, $2)`;
      await asSuperuser(
        db,
        `insert into audit_signature select number + 100, ${text}, public_key, signature, '2000-01-01' from audit_signature where number = 1`,
        [`${accountId} 1 `, junk],
      );
      await asSuperuser(db, `update audit_signature set signed_at = signed_at - interval '2 days'`);
      const [made] = await db.transaction((tx) => signHeads(tx, signingKeys(VAULT)));
      expect(await signedHeads(db, made!.number)).toMatchObject([{ accountId, number: 2n }]);
      await asSuperuser(db, 'delete from audit_signature where number > 1');
    }
  });
});
