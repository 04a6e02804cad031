/** The ledger is a hash chain, and the proof names every way to tamper with it. */
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { proveAudit } from '../../../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../../../entities/history/audit-signature.ts';
import { idFloor, newId } from '../../../entities/ids.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { signedHeads } from '../../history/signed-lines.ts';
import { asSuperuser, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { openShop } from '../../setup/shop.ts';
import { VAULT } from '../../setup/vault.ts';

const shop = await openShop(atEnd);
const { db } = shop;
let account = '';
beforeEach(async () => {
  await truncate(
    db,
    'transfer, usage_day, spending_month, balance, payout, movement, audit_entry, audit_link, audit_unlinked, audit_signature',
  );
  account = await shop.account(1_000_000n);
});

const link = () => shop.tick('audit-links');
const sign = async () => {
  await asSuperuser(db, `update audit_signature set signed_at = signed_at - interval '2 days'`);
  await shop.tick('audit-signature');
};
const prove = async () => (await proveAudit(db, { publicKeys: signingKeys(VAULT).map(publicKeyOf) })).faults;

/** Posts transfers until the ledger has so many, and links them. @returns their ids in the order of the chain */
async function transfers(count: number): Promise<string[]> {
  const [present] = await db.query<{ rows: number }>('select count(*)::int as rows from transfer');
  for (let left = count - present!.rows; left > 0; left--) await shop.fund(account, 1_000_000n);
  await link();
  const rows = await db.query<{ id: string }>(
    `select entry_id as id from audit_link where account_id = 'ledger' order by number`,
  );
  return rows.map(({ id }) => id);
}
const INSERT = `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description, created_at)
  values ($1, $2, 'adjustment', 'adjustment', 'available:' || $2, 5, $1, 'forged', now() - $3::interval)`;
/** The forger also raises the sums that triggers would keep, for transfers of an age. */
const raise = (age: string) => `with raised as (update balance set available_micros = available_micros + 5)
  insert into usage_day as kept
    select account_id, ((now() - interval '${age}') at time zone 'UTC')::date, 5 from balance
    on conflict (account_id, day) do update set total_micros = kept.total_micros + 5`;
const RAISE = raise('0 s');

describe('The proof of the ledger', () => {
  it('finds nothing in transfers as they were written, linked and signed', async () => {
    await transfers(3);
    await sign();
    await transfers(5);
    await sign();
    expect(await proveAudit(db, { publicKeys: signingKeys(VAULT).map(publicKeyOf) })).toMatchObject({
      transfers: 5,
      signatures: 2,
      faults: [],
    });
  });

  it.each([
    [
      'a changed amount',
      ([, , third]) => [`update transfer set amount_micros = amount_micros + 5 where id = '${third}'`],
      ([, , third]) => [third, 'The entry was changed. It has the number 3 of the chain.'],
    ],
    [
      'an amount that was changed together with its balance',
      ([, , third]) => [`update transfer set amount_micros = amount_micros + 5 where id = '${third}'`, RAISE],
      ([, , third]) => [third, 'The entry was changed. It has the number 3 of the chain.'],
    ],
    ...['period_from', 'period_to'].flatMap((column) =>
      ['infinity', '-infinity', '290000-01-01'].map((time) => [
        `the ${column} ${time} instead of none`,
        ([, second]: string[]) => [`update transfer set ${column} = '${time}' where id = '${second}'`],
        ([, second]: string[]) => [second, 'The entry was changed. It has the number 2 of the chain.'],
      ]),
    ),
    [
      'a changed time',
      ([first]) => [`update transfer set created_at = created_at - interval '1 ms' where id = '${first}'`],
      ([first]) => [first, 'The entry was changed. It has the number 1 of the chain.'],
    ],
    [
      'a transfer deleted at the beginning',
      ([first]) => [`delete from transfer where id = '${first}'`],
      ([first]) => [first, 'The entry was deleted. It had the number 1 of the chain.'],
    ],
    [
      'transfers deleted at the beginning with their links',
      ([first, second]) => [
        `delete from transfer where id in ('${first}', '${second}')`,
        `delete from audit_link where entry_id in ('${first}', '${second}')`,
      ],
      ([, , third]) => [third, 'The entries before it were deleted: the chain begins with number 3.'],
    ],
    [
      'a transfer deleted in the middle with its link',
      ([, second]) => [
        `delete from transfer where id = '${second}'`,
        `delete from audit_link where entry_id = '${second}'`,
      ],
      ([, , third]) => [third, 'The entries 2 to 2 of the chain before it were deleted.'],
    ],
    [
      'transfers deleted at the end with their links',
      ([, , , fourth, fifth]) => [
        `delete from transfer where id in ('${fourth}', '${fifth}')`,
        `delete from audit_link where entry_id in ('${fourth}', '${fifth}')`,
      ],
      () => [null, 'The entries 4 to 5 were deleted at the end of the chain.'],
    ],
    [
      'all transfers deleted with their links',
      () => ['delete from transfer', `delete from audit_link where account_id = 'ledger'`],
      () => [null, 'The whole chain was deleted: it had 5 entries.'],
    ],
    [
      'transfers in another order',
      ([, second, third]) => [
        `update audit_link set number = number + 100 where entry_id in ('${second}', '${third}')`,
        `update audit_link set number = case entry_id when '${second}' then 3 else 2 end where number > 100`,
      ],
      ([, , third]) => [third, 'The entry is out of order: it has the number 2 of the chain.'],
    ],
  ] as [string, (ids: string[]) => string[], (ids: string[]) => [string | null, string]][])(
    'names %s',
    async (_, tampering, expected) => {
      const ids = await transfers(5);
      await sign();
      expect(await prove()).toEqual([]);
      for (const sql of tampering(ids)) await asSuperuser(db, sql);
      const [entryId, detail] = expected(ids);
      expect(await prove()).toContainEqual({ accountId: 'ledger', entryId, detail });
    },
  );

  it('names a transfer that a superuser wrote without triggers, although the books balance', async () => {
    await transfers(2);
    const id = newId('xfr');
    await asSuperuser(db, INSERT, [id, account, '0 s']);
    await asSuperuser(db, RAISE);
    expect(await proveBooks(db)).toMatchObject({ balanced: true });
    const fault = { accountId: 'ledger', entryId: id, detail: 'The transfer is in no chain.' };
    expect(await prove()).toEqual([fault]);
    await link();
    expect(await prove()).toEqual([fault]);
  });

  it('names a transfer that was dated before the last signature, although it came into the chain', async () => {
    await transfers(2);
    await sign();
    const id = `${idFloor('xfr', Date.now() - 7_200_000)}forged`;
    await asSuperuser(db, INSERT, [id, account, '2 hours']);
    await asSuperuser(db, `insert into audit_unlinked values ('${id}')`);
    await asSuperuser(db, raise('2 hours'));
    await link();
    expect(await proveBooks(db)).toMatchObject({ balanced: true });
    const detail = expect.stringMatching(/^The transfer has the time \S+Z, but a later signature lacks it\.$/);
    expect(await prove()).toEqual([{ accountId: 'ledger', entryId: id, detail }]);
    await sign();
    expect(await prove()).toEqual([{ accountId: 'ledger', entryId: id, detail }]);
  });

  it('names a chain that was written anew from a transfer on, from its signature on', async () => {
    const [, second] = await transfers(3);
    const anew = async () => {
      await asSuperuser(db, `update transfer set amount_micros = amount_micros + 5 where id = $1`, [second]);
      await asSuperuser(db, RAISE);
      await asSuperuser(db, 'update usage_day set topped_up_micros = topped_up_micros + 5');
      await asSuperuser(db, 'truncate audit_link');
      await asSuperuser(db, 'insert into audit_unlinked select id from transfer');
      await link();
    };
    await anew();
    expect(await prove()).toEqual([]);
    await sign();
    await anew();
    expect(await proveBooks(db)).toMatchObject({ balanced: true });
    const detail = 'The chain was rewritten after number 3 was signed.';
    expect(await prove()).toEqual([{ accountId: 'ledger', entryId: expect.any(String), detail }]);
  });
});

describe('A signature', () => {
  it('has the head of the ledger, also if the ledger has not grown since the signature before', async () => {
    await transfers(2);
    await sign();
    await sign();
    expect(await Promise.all([1n, 2n].map((number) => signedHeads(db, number)))).toMatchObject([
      [{ accountId: 'ledger', number: 2n, first: 1n }],
      [{ accountId: 'ledger', number: 2n, first: 1n }],
    ]);
  });

  it('covers every transfer that was posted before it, also if the worker had linked none', async () => {
    for (let i = 0; i < 3; i++) await shop.fund(account, 1n);
    await sign();
    expect(await signedHeads(db, 1n)).toMatchObject([{ accountId: 'ledger', number: 4n }]);
  });
});

describe('The role of the service', () => {
  it.each([
    ['write the time of a transfer', INSERT, [newId('xfr'), 'acct_x', '0 s'], '42501'],
    [
      'link a transfer twice',
      `insert into audit_link select account_id, number + 1, entry_id, hash from audit_link where account_id = 'ledger'`,
      [],
      '23505',
    ],
    [
      'link a transfer that does not exist',
      `insert into audit_link values ('ledger', 2, 'xfr_none', sha256('x'))`,
      [],
      '23000',
    ],
    [
      'write an audit entry into the chain of the ledger',
      `insert into audit_entry (id, account_id, action, actor_type) values ('aud_x', 'ledger', 'x', 'system')`,
      [],
      '23514',
    ],
    ['delete a link of a transfer', `delete from audit_link where account_id = 'ledger'`, [], '42501'],
  ])('may not %s', async (_, sql, values, code) => {
    await transfers(1);
    await expect(db.query(sql, values)).rejects.toMatchObject({ code });
  });
});

it('The worker names a chain of the ledger that takes no link, and the proof the waiting transfers', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => logged.mockRestore());
  await asSuperuser(db, `insert into audit_link values ('ledger', $1, 'xfr_none', sha256('x'))`, [2n ** 63n - 1n]);
  await link();
  expect(logged.mock.calls.flat().join('\n')).toContain('The worker cannot link transfers: ');
  await asSuperuser(db, `update transfer set created_at = now() - interval '2 hours'`);
  const detail = 'Entries that wait for their chain for longer than an hour: 1.';
  expect(await prove()).toContainEqual({ accountId: 'ledger', entryId: expect.stringMatching(/^xfr_/), detail });
});
