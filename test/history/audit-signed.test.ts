/** The audit log against a thief who is superuser of the database, but lacks SECRET_KEY. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { proveAudit } from '../../entities/history/audit-proof.ts';
import { signHeads } from '../../entities/history/audit-sign.ts';
import { publicKeyOf, signingKeys } from '../../entities/history/audit-signature.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import { Vault } from '../../entities/secrets.ts';
import { asSuperuser, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { HOUR_MS, openShop } from '../setup/shop.ts';
import { VAULT } from '../setup/vault.ts';
import { addSignature, signedHeads } from './signed-lines.ts';

const shop = await openShop(atEnd);
const { db } = shop;
beforeEach(() => truncate(db, 'audit_entry, audit_link, audit_unlinked, audit_signature'));

const keysOf = (vault: Vault) => signingKeys(vault).map(publicKeyOf);
const prove = (vault = VAULT) => proveAudit(db, { publicKeys: keysOf(vault) });
const daysAgo = (days: number) => new Date(Date.now() - days * 24 * HOUR_MS);

/** Writes entries of an account and links them. @returns the ids of its chain */
async function written(count: number, accountId: string): Promise<string[]> {
  for (let i = 0; i < count; i++)
    await db.transaction((tx) => record(tx, accountId, accountId, { type: 'account.resumed', actor: SYSTEM }));
  await shop.tick('audit-links');
  const rows = await db.query<{ id: string }>(
    'select entry_id as id from audit_link where account_id = $1 order by number',
    [accountId],
  );
  return rows.map(({ id }) => id);
}
async function sign(keys = signingKeys(VAULT)) {
  await asSuperuser(db, `update audit_signature set signed_at = signed_at - interval '2 days'`);
  const [made] = await db.transaction((tx) => signHeads(tx, keys));
  return { ...made!, heads: await signedHeads(db, made!.number) };
}
const thief = generateKeyPairSync('ed25519').privateKey;

const signedAt = (given: Parameters<typeof addSignature>[2], key: KeyObject = signingKeys(VAULT)[0]) =>
  addSignature(db, key, given);
const relink = async () => {
  await asSuperuser(db, 'truncate audit_link');
  await asSuperuser(db, 'insert into audit_unlinked select id from audit_entry');
  await shop.tick('audit-links');
};

describe('The proof of the audit log', () => {
  const accountId = newId('acct');
  it.each([
    [
      'the beginning of a chain whose first signed head has the number 9',
      async (ids) => {
        await asSuperuser(db, 'delete from audit_entry where id = any($1)', [ids.slice(0, 8)]);
        await asSuperuser(db, 'delete from audit_link where entry_id = any($1)', [ids.slice(0, 7)]);
      },
      (ids) => ids[7],
      'The entries up to number 8 were deleted before their time.',
    ],
    [
      'all entries of a chain, whose last link stays',
      async (ids) => {
        await asSuperuser(db, 'delete from audit_entry where id = any($1)', [ids]);
        await asSuperuser(db, 'delete from audit_link where entry_id = any($1)', [ids.slice(0, 8)]);
      },
      (ids) => ids[8],
      'The entries up to number 9 were deleted before their time.',
    ],
    [
      'entries that became old by force, so that retention deletes them',
      async (ids) => {
        await asSuperuser(db, `update audit_entry set created_at = now() - interval '91 days' where id = any($1)`, [
          ids.slice(0, 3),
        ]);
        await shop.tick('audit-retention');
      },
      (ids) => ids[2],
      'The entries up to number 3 were deleted before their time.',
    ],
    [
      'an entry before all links were made anew',
      async (ids) => {
        await asSuperuser(db, 'delete from audit_entry where id = $1', [ids[0]]);
        await relink();
        await written(1, accountId);
      },
      () => expect.stringMatching(/^aud_/),
      'The chain was rewritten after number 9 was signed.',
    ],
    [
      'an entry that came into the chain of another account',
      async (ids) => {
        await asSuperuser(db, `update audit_entry set account_id = 'acct_other' where id = $1`, [ids[8]]);
        await relink();
      },
      () => null,
      'The entries 9 to 9 were deleted at the end of the chain.',
    ],
    [
      'a whole chain',
      async () => {
        await asSuperuser(db, 'delete from audit_entry where account_id = $1', [accountId]);
        await asSuperuser(db, 'delete from audit_link where account_id = $1', [accountId]);
      },
      () => null,
      'The whole chain was deleted: it had 9 entries.',
    ],
  ] as [string, (ids: string[]) => Promise<unknown>, (ids: string[]) => unknown, string][])(
    'names the account, and the nearest known entry, of %s',
    async (_, tamper, entryOf, detail) => {
      const ids = await written(9, accountId);
      await written(2, newId('acct'));
      await sign();
      expect((await prove()).faults).toEqual([]);
      await tamper(ids);
      expect((await prove()).faults).toContainEqual({ accountId, entryId: entryOf(ids), detail });
    },
  );

  it('names the heads of two chains that were exchanged', async () => {
    const [one, other] = [newId('acct'), newId('acct')];
    await written(2, one);
    await written(2, other);
    await sign();
    await asSuperuser(db, `update audit_link set account_id = account_id || '-' where number = 2`);
    await asSuperuser(
      db,
      `update audit_link set account_id = case account_id when '${one}-' then '${other}' else '${one}' end where number = 2`,
    );
    const { faults } = await prove();
    expect(new Set(faults.map(({ accountId }) => accountId))).toEqual(new Set([one, other]));
  });

  it('sees deleted entries although somebody made the table date all links to 2000', async () => {
    await written(1, accountId);
    await sign();
    await asSuperuser(db, `alter table audit_link alter linked_at set default '2000-01-01'`);
    onTestFinished(() => asSuperuser(db, 'alter table audit_link alter linked_at set default clock_timestamp()'));
    await written(2, accountId);
    expect(await db.query(`select from audit_link where linked_at < now() - interval '1 hour'`)).toEqual([]);
    await asSuperuser(db, `update audit_link set linked_at = '2000-01-01' where number > 1`);
    expect((await sign()).heads).toMatchObject([{ accountId, number: 3n }]);
    expect((await prove()).faults).toEqual([]);
    await asSuperuser(db, 'delete from audit_entry where id in (select entry_id from audit_link where number > 1)');
    await asSuperuser(db, 'delete from audit_link where number > 1');
    const detail = 'The entries 2 to 3 were deleted at the end of the chain.';
    expect((await prove()).faults).toEqual([{ accountId, entryId: null, detail }]);
  });

  it.each([
    [`'2000-01-01'`, 'The entries 2 to 3 are older than the latest signature, but no signature covers them.'],
    [`now() + interval '2 hours'`, 'The entries 2 to 3 came into the chain in the future.'],
  ])('names links that no signature covers and that have the time %s', async (time, detail) => {
    await written(1, accountId);
    await sign();
    const ids = await written(3, accountId);
    await asSuperuser(db, `update audit_link set linked_at = ${time} where number in (2, 3)`);
    expect((await prove()).faults).toEqual([{ accountId, entryId: ids[1], detail }]);
  });

  it('names 50 faults, and says that there are more', async () => {
    await written(51, accountId);
    await asSuperuser(
      db,
      `update audit_entry set action = 'x' where id in (select entry_id from audit_link where number < 51)`,
    );
    const counted = async () => {
      const { faults, hasMoreFaults } = await prove();
      return [faults.length, hasMoreFaults];
    };
    expect(await counted()).toEqual([50, false]);
    await asSuperuser(db, `insert into audit_unlinked values ('aud_gone')`);
    expect(await counted()).toEqual([50, true]);
  });

  it('finds the deletion of the first signatures', async () => {
    const ids = await written(1, accountId);
    await sign();
    await written(1, accountId);
    await sign();
    ids.push(...(await written(1, accountId)).slice(1));
    await sign();
    await asSuperuser(db, 'delete from audit_signature where number < 3');
    const detail = 'Signature 3: the signatures before it were deleted before their time.';
    expect((await prove()).faults).toEqual([{ accountId: null, entryId: null, detail }]);
    await asSuperuser(db, 'delete from audit_entry where id = any($1)', [ids.slice(0, 2)]);
    await asSuperuser(db, 'delete from audit_link where number = 1');
    expect((await prove()).faults).toContainEqual({ accountId: null, entryId: null, detail });
  });

  it('shows by a kept digest alone that somebody deleted the latest signature and all that it covers', async () => {
    await written(1, accountId);
    await sign();
    const later = (await written(2, accountId)).slice(1);
    const digests = [(await sign()).sha256];
    await asSuperuser(db, 'delete from audit_entry where id = any($1)', [later]);
    await asSuperuser(db, 'delete from audit_link where entry_id = any($1)', [later]);
    await asSuperuser(db, 'delete from audit_signature where number = 2');
    const proof = await proveAudit(db, { publicKeys: keysOf(VAULT), digests });
    expect(proof).toMatchObject({ signatures: 1, faults: [], missingDigests: digests });
    expect(proof.latest!.signedAt).toEqual(proof.firstSignedAt);
  });

  it('accepts that retention deletes signatures after 97 days, also after a long outage', async () => {
    const times = [daysAgo(99), daysAgo(98), daysAgo(20), daysAgo(19)];
    let previous = '';
    for (const [place, at] of times.entries())
      previous = await signedAt({
        ...{ number: BigInt(place + 1), previous, signedAt: at, since: times[place - 1] ?? null },
      });
    await shop.tick('audit-retention');
    expect(await prove()).toMatchObject({ signatures: 2, faults: [] });
  });

  it('accepts a chain whose account was idle for longer than its signatures live', async () => {
    await db.query(
      `insert into audit_entry (id, account_id, action, actor_type, created_at) values ($1, $2, 'x', 'system', $3)`,
      [newId('aud'), accountId, daysAgo(200)],
    );
    await shop.tick('audit-links');
    await shop.tick('audit-retention');
    await sign();
    await written(2, accountId);
    await sign();
    expect(await prove()).toMatchObject({ entries: 2, signatures: 2, faults: [] });
  });

  it('accepts a database of an earlier version, and protects its chains from the next signature on', async () => {
    const ids = await written(9, accountId);
    const { heads } = await sign();
    await truncate(db, 'audit_signature');
    await signedAt({ heads: heads.map(({ first: _first, ...head }) => head) });
    expect((await prove()).faults).toEqual([]);
    await shop.tick('audit-signature');
    expect(await prove()).toMatchObject({ signatures: 2, faults: [] });
    await asSuperuser(db, 'delete from audit_entry where id = any($1)', [ids.slice(0, 4)]);
    await asSuperuser(db, 'delete from audit_link where entry_id = any($1)', [ids.slice(0, 3)]);
    const detail = 'The entries up to number 4 were deleted before their time.';
    expect((await prove()).faults).toEqual([{ accountId, entryId: ids[3], detail }]);
  });
});

describe('A signature of a key that the service never had', () => {
  const foreign = (number: number) => ({
    ...{ accountId: null, entryId: null },
    detail: `Signature ${number}: neither SECRET_KEY nor a later signature names its key. Is SECRET_KEY the current one?`,
  });

  it('is a fault, also if it stands for all others over a chain that was written anew', async () => {
    const [first] = await written(3, newId('acct'));
    await sign();
    await asSuperuser(db, `update audit_entry set action = 'server.deleted' where id = $1`, [first]);
    await relink();
    await truncate(db, 'audit_signature');
    await sign([thief]);
    expect(await prove()).toMatchObject({ foreignSignatures: 1, faults: [foreign(1)] });
  });

  it('hides no heads from the next signature of the service, wherever its number and time are', async () => {
    const accountId = newId('acct');
    await written(1, accountId);
    const first = await sign();
    await written(1, accountId);
    const future = new Date(Date.now() + 1000 * 24 * HOUR_MS);
    for (const number of [2n, 3n, 9n, 2n ** 63n - 1n]) await signedAt({ number, signedAt: future }, thief);
    const next = await sign();
    expect(next.number).toBe(4n);
    expect(next).toMatchObject({ previousSha256: first.sha256, heads: [{ accountId, number: 2n }] });
    const { faults, latest } = await prove();
    expect(faults.map(({ detail }) => detail)).toHaveLength(4);
    expect(latest!.digest).toBe(next.sha256);
  });

  it('is also one of an old key after the service left that key', async () => {
    const [A, B] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    await written(1, newId('acct'));
    for (const vault of [new Vault(A), new Vault(B, A), new Vault(B)]) await sign(signingKeys(vault));
    expect(await prove(new Vault(B))).toMatchObject({ signatures: 3, faults: [] });
    await signedAt({ number: 4n }, signingKeys(new Vault(A))[0]);
    expect((await prove(new Vault(B))).faults).toEqual([foreign(4)]);
  });
});
