/** The audit log is append-only, and the proof names every change by force. */
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { proveAudit } from '../../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../../entities/history/audit-signature.ts';
import { record } from '../../entities/history/record.ts';
import { idFloor, newId } from '../../entities/ids.ts';
import { Vault } from '../../entities/secrets.ts';
import { asOwner, asSuperuser, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { HOUR_MS, openShop } from '../setup/shop.ts';
import { SECRET_KEY, VAULT } from '../setup/vault.ts';

const shop = await openShop(atEnd);
const { db } = shop;
const publicKeys = signingKeys(VAULT).map(publicKeyOf);
const DAY_MS = 24 * HOUR_MS;

const link = () => shop.tick('audit-links');
const sign = async () => {
  await asSuperuser(db, `update audit_signature set signed_at = signed_at - interval '2 days'`);
  await shop.tick('audit-signature');
};
const prove = () => proveAudit(db, { publicKeys });

/** Writes entries of an account and links them. @returns their ids */
async function written(count: number, accountId = newId('acct')): Promise<string[]> {
  for (let i = 0; i < count; i++)
    await db.transaction((tx) => record(tx, accountId, accountId, { type: 'account.resumed', actor: SYSTEM }));
  await link();
  const rows = await db.query<{ entryId: string }>(
    'select entry_id from audit_link where account_id = $1 order by number',
    [accountId],
  );
  return rows.map(({ entryId }) => entryId);
}
const accountOf = async (entryId: string) =>
  (await db.query<{ accountId: string }>('select account_id from audit_link where entry_id = $1', [entryId]))[0]!
    .accountId;
const EVERYTHING = 'audit_entry, audit_link, audit_unlinked, audit_signature';

describe('The audit log', () => {
  it.each([
    ['audit_entry', `update audit_entry set action = 'other'`],
    ['audit_entry', 'delete from audit_entry'],
    ['audit_entry', 'truncate audit_entry'],
    ['audit_link', `update audit_link set hash = sha256('x')`],
    ['audit_link', 'delete from audit_link'],
    ['audit_link', 'truncate audit_link'],
    ['audit_signature', `update audit_signature set signed_text = ''`],
    ['audit_signature', 'delete from audit_signature'],
    ['audit_signature', 'truncate audit_signature'],
  ])('refuses to change what stands in %s: %s', async (table, sql) => {
    await written(1);
    await sign();
    await expect(asOwner(db, sql)).rejects.toThrow(new RegExp(`${table} (is append-only|keeps)`));
    await truncate(db, EVERYTHING);
  });

  it('is right after it was written, linked and signed, for customers and for the operator', async () => {
    await written(3);
    await written(2, 'operator');
    await sign();
    await written(2, 'operator');
    await sign();
    expect(await prove()).toEqual({
      entries: 7,
      transfers: 0,
      signatures: 2,
      foreignSignatures: 0,
      latest: { digest: expect.stringMatching(/^[0-9a-f]{64}$/), signedAt: expect.any(Date) },
      firstSignedAt: expect.any(Date),
      missingDigests: [],
      faults: [],
      hasMoreFaults: false,
    });
  });

  it('is signed once a day, and at once with a new SECRET_KEY', async () => {
    await truncate(db, EVERYTHING);
    await written(1);
    await shop.tick('audit-signature');
    await shop.tick('audit-signature');
    expect((await prove()).signatures).toBe(1);
    const vault = new Vault(Buffer.alloc(32, 77), Buffer.from(SECRET_KEY, 'base64'));
    const restarted = shop.newProvisioning({ vault });
    await restarted.schedule();
    await restarted.newWorker().drain('periodic');
    const keys = signingKeys(vault).map(publicKeyOf).slice(0, 1);
    expect(await proveAudit(db, { publicKeys: keys })).toMatchObject({ signatures: 2, faults: [] });
  });

  it('is signed once a day by each key while workers have different ones', async () => {
    await truncate(db, EVERYTHING);
    await written(1);
    const vault = new Vault(Buffer.alloc(32, 77), Buffer.from(SECRET_KEY, 'base64'));
    const other = shop.newProvisioning({ vault }).newWorker();
    for (let round = 0; round < 3; round++) {
      await shop.tick('audit-signature');
      await db.query(`update task set run_at = now() where subject = 'cron:audit-signature'`);
      await other.drain('periodic');
    }
    const keys = signingKeys(vault).map(publicKeyOf);
    expect(await proveAudit(db, { publicKeys: keys })).toMatchObject({
      signatures: 2,
      foreignSignatures: 0,
      faults: [],
    });
  });
});

describe('The proof of the audit log', () => {
  it.each([
    [
      'a changed entry',
      ([, , third]) => [`update audit_entry set action = 'account.suspended' where id = '${third}'`],
      ([, , third]) => ({ entryId: third, detail: 'The entry was changed. It has the number 3 of the chain.' }),
    ],
    [
      'a changed time',
      ([first]) => [`update audit_entry set created_at = created_at - interval '1 ms' where id = '${first}'`],
      ([first]) => ({ entryId: first, detail: 'The entry was changed. It has the number 1 of the chain.' }),
    ],
    [
      'an entry deleted in the middle',
      ([, second]) => [`delete from audit_entry where id = '${second}'`],
      ([, second]) => ({ entryId: second, detail: 'The entry was deleted. It had the number 2 of the chain.' }),
    ],
    [
      'an entry deleted in the middle with its link',
      ([, second]) => [
        `delete from audit_entry where id = '${second}'`,
        `delete from audit_link where entry_id = '${second}'`,
      ],
      ([, , third]) => ({ entryId: third, detail: 'The entries 2 to 2 of the chain before it were deleted.' }),
    ],
    [
      'entries deleted at the end with their links',
      ([, , , fourth, fifth]) => [
        `delete from audit_entry where id in ('${fourth}', '${fifth}')`,
        `delete from audit_link where entry_id in ('${fourth}', '${fifth}')`,
      ],
      () => ({ entryId: null, detail: 'The entries 4 to 5 were deleted at the end of the chain.' }),
    ],
    [
      'a deleted chain',
      ([first], accountId) => [
        `delete from audit_entry where account_id = '${accountId}'`,
        `delete from audit_link where account_id = '${accountId}' and '${first}' <> ''`,
      ],
      () => ({ entryId: null, detail: 'The whole chain was deleted: it had 5 entries.' }),
    ],
    [
      'entries in another order, with their links',
      ([, second, third]) => [
        `update audit_link set number = -number where entry_id in ('${second}', '${third}')`.replace(
          '-number',
          'number + 100',
        ),
        `update audit_link set number = case entry_id when '${second}' then 3 else 2 end where number > 100`,
      ],
      ([, , third]) => ({ entryId: third, detail: 'The entry is out of order: it has the number 2 of the chain.' }),
    ],
    [
      'entries in another order, without their hashes',
      ([, second, third]) => [
        `update audit_link set entry_id = entry_id || '-' where entry_id in ('${second}', '${third}')`,
        `update audit_link set entry_id = case entry_id when '${second}-' then '${third}' else '${second}' end
          where entry_id in ('${second}-', '${third}-')`,
      ],
      ([, , third]) => ({ entryId: third, detail: 'The entry is out of order: it has the number 2 of the chain.' }),
    ],
    [
      'an entry of another account',
      ([first]) => [`update audit_entry set account_id = 'acct_thief' where id = '${first}'`],
      ([first]) => ({ entryId: first, detail: 'The entry was moved to another account.' }),
    ],
    [
      'entries deleted at the beginning as if they were old',
      ([first, second]) => [
        `delete from audit_entry where id in ('${first}', '${second}')`,
        `delete from audit_link where entry_id = '${first}'`,
      ],
      ([, second]) => ({ entryId: second, detail: 'The entries up to number 2 were deleted before their time.' }),
    ],
  ] as [string, (ids: string[], accountId: string) => string[], (ids: string[]) => object][])(
    'names account and entry of %s',
    async (name, tampering, expected) => {
      await truncate(db, EVERYTHING);
      const first = await written(1);
      const accountId = await accountOf(first[0]!);
      await sign();
      const ids = await written(4, accountId);
      await sign();
      await written(2);
      expect((await prove()).faults).toEqual([]);
      for (const sql of tampering(ids, accountId)) await asSuperuser(db, sql);
      const { faults } = await prove();
      expect(faults, name).toContainEqual({ accountId, ...expected(ids) });
      expect(faults.every((fault) => fault.accountId === accountId)).toBe(true);
    },
  );

  it('finds an old entry that somebody wrote into the log without its chain, and one deleted before its link', async () => {
    await truncate(db, EVERYTHING);
    const [known] = await written(1);
    await asSuperuser(
      db,
      `insert into audit_entry (id, account_id, action, actor_type) values ('aud_forged', 'acct_x', 'server.deleted', 'system')`,
    );
    await asSuperuser(db, `insert into audit_unlinked values ('aud_gone')`);
    expect((await prove()).faults).toEqual([
      { accountId: 'acct_x', entryId: 'aud_forged', detail: 'The entry is in no chain.' },
      { accountId: null, entryId: 'aud_gone', detail: 'The entry was deleted before it came into its chain.' },
    ]);
    expect(known).toBeDefined();
  });

  it('finds a chain that was rewritten from an entry on, and changed and missing signatures', async () => {
    await truncate(db, EVERYTHING);
    const [first, second] = await written(2);
    const accountId = await accountOf(first!);
    await sign();
    await sign();
    await sign();
    await asSuperuser(db, `update audit_entry set action = 'server.deleted' where id = $1`, [first]);
    await asSuperuser(db, `insert into audit_unlinked select id from audit_entry`);
    await asSuperuser(db, 'delete from audit_link');
    await link();
    const detail = 'The chain was rewritten after number 2 was signed.';
    expect((await prove()).faults).toEqual([{ accountId, entryId: second, detail }]);
    await asSuperuser(
      db,
      `update audit_signature set signed_text = replace(signed_text, $1, 'acct_x') where number = 1`,
      [accountId],
    );
    await asSuperuser(db, 'delete from audit_signature where number = 2');
    expect((await prove()).faults).toEqual(
      expect.arrayContaining([
        { accountId: null, entryId: null, detail: 'Signature 1: it does not fit its text.' },
        { accountId: null, entryId: null, detail: 'Signature 3: it does not follow the one before it.' },
      ]),
    );
  });
});

describe('Retention', () => {
  it('deletes the beginning of each chain after 90 days, and keeps the rest provable', async () => {
    await truncate(db, EVERYTHING);
    const accountId = newId('acct');
    for (const days of [400, 91, 92, 89, 95, 1]) {
      const at = new Date(Date.now() - days * DAY_MS);
      await db.query(
        `insert into audit_entry (id, account_id, action, actor_type, created_at) values ($1, $2, $3, 'system', $4)`,
        [`${idFloor('aud', at.getTime())}0000000000000000`, accountId, String(days), at],
      );
      await link();
    }
    await sign();
    await shop.tick('audit-retention');
    // The entry of 95 days came into its chain after one of 89 days, so it stays as long.
    expect(
      (await db.query<{ action: string }>('select action from audit_entry order by id')).map((one) => one.action),
    ).toEqual(['95', '89', '1']);
    expect(await prove()).toMatchObject({ entries: 3, faults: [] });
    await shop.tick('audit-retention');
    expect(await prove()).toMatchObject({ entries: 3, faults: [] });
    const [first] = await db.query<{ number: bigint }>('select number from audit_link order by number limit 1');
    expect(first).toEqual({ number: 3n });
  });
});
