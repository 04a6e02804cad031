/** The proof since the last whole proof finds much, and leaves some faults to the whole one. */
import { beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { FIT_ENTRIES } from '../../../entities/history/audit-link.ts';
import { proveAudit, proveAuditSince } from '../../../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../../../entities/history/audit-signature.ts';
import { record } from '../../../entities/history/record.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { ADJUSTMENT, available, post } from '../../../entities/payments/ledger.ts';
import { FIT_TRANSFERS } from '../../../entities/payments/ledger-chain.ts';
import { findMark, keepMark, type Mark, markOf } from '../../../entities/payments/proof/mark.ts';
import { proveBooksSince } from '../../../entities/payments/proof/since.ts';
import { Vault } from '../../../entities/secrets.ts';
import { booksProcess } from '../../../provisioning/payments/books-proof.ts';
import { asSuperuser, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { queriesOf } from '../../setup/queries.ts';
import { openShop } from '../../setup/shop.ts';
import { VAULT } from '../../setup/vault.ts';

const shop = await openShop(atEnd);
const { db } = shop;
const publicKeys = signingKeys(VAULT).map(publicKeyOf);
let account = '';
let mark: Mark;

const link = () => shop.tick('audit-links');
const sign = async () => {
  await asSuperuser(db, `update audit_signature set signed_at = signed_at - interval '2 days'`);
  await shop.tick('audit-signature');
};
const whole = async () => [
  ...(await proveBooks(db)).faults.map(({ detail }) => detail),
  ...(await proveAudit(db, { publicKeys })).faults.map(({ detail }) => detail),
];
const since = async (from = mark) => [
  ...(await proveBooksSince(db, from)).faults.map(({ detail }) => detail),
  ...(await proveAuditSince(db, from, publicKeys)).faults.map(({ detail }) => detail),
];
const takeMark = async () => {
  const { latest } = await proveAudit(db, { publicKeys });
  return markOf(db, await proveBooks(db), latest?.digest ?? null);
};

/** Four linked and signed transfers come before the mark, and a fifth waits. Then come a sixth one and an entry of the log. */
beforeEach(async () => {
  await truncate(
    db,
    `transfer, usage_day, spending_month, balance, payout, movement, audit_entry, audit_link, audit_unlinked, audit_signature,
      proof_mark`,
  );
  account = await shop.account(1_000_000n);
  for (let n = 1; n < 4; n++) await shop.fund(account, 1_000_000n);
  await link();
  await sign();
  await shop.fund(account, 1_000_000n);
  expect(await whole()).toEqual([]);
  mark = await takeMark();
  await shop.fund(account, 1_000_000n);
  await db.transaction((tx) => record(tx, account, account, { type: 'account.resumed', actor: SYSTEM }));
  await link();
});

const OTHER_BALANCES = 'The balances are not those of the last whole proof and the transfers since.';
const transferOf = (number: number) =>
  `(select entry_id from audit_link where account_id = 'ledger' and number = ${number})`;

describe('The proof since the last whole proof', () => {
  it('finds nothing in records as the service wrote them, and reads only the new transfers', async () => {
    expect(mark).toMatchObject({ number: 4n });
    expect(await since()).toEqual([]);
    expect(await proveBooksSince(db, mark)).toMatchObject({ transfers: 2 });
    expect(await proveAuditSince(db, mark, publicKeys)).toMatchObject({ transfers: 2, signatures: 1 });
    await sign();
    await shop.fund(account, 1_000_000n);
    expect(await since()).toEqual([]);
    expect(await proveAuditSince(db, mark, publicKeys)).toMatchObject({ signatures: 2 });
  });

  it.each([
    ['a changed balance', 'update balance set available_micros = available_micros + 1', OTHER_BALANCES],
    ['a deleted balance', 'set session_replication_role = replica; delete from balance', OTHER_BALANCES],
    [
      'a new transfer with another amount, although the balance agrees',
      `update transfer set amount_micros = amount_micros + 5 where id = ${transferOf(6)};
        update balance set available_micros = available_micros + 5`,
      'The entry was changed. It has the number 6 of the chain.',
    ],
    [
      'a new transfer that is gone, and its money, too',
      `set session_replication_role = replica; update balance set available_micros = available_micros - 1000000;
        delete from transfer where id = ${transferOf(5)}`,
      'The entry was deleted. It had the number 5 of the chain.',
    ],
    [
      'a chain that somebody wrote anew',
      `set session_replication_role = replica; update audit_link set hash = sha256(hash) where account_id = 'ledger' and number = 4`,
      'The chain was rewritten after the last whole proof.',
    ],
    [
      'a new entry of the audit log with another actor',
      `update audit_entry set actor_name = 'somebody' where id = (select max(id) from audit_entry)`,
      'Entries since the last whole proof that do not fit: 1.',
    ],
  ])('finds %s', async (_, tampering, detail) => {
    await asSuperuser(db, tampering);
    expect(await since()).toContain(detail);
    expect(await whole()).not.toEqual([]);
  });

  it('finds that all signatures are gone, which the whole proof cannot know', async () => {
    await asSuperuser(db, 'set session_replication_role = replica; delete from audit_signature');
    expect(await since()).toEqual(['Signature 0: the one that the last whole proof covered was deleted.']);
    expect(await whole()).toEqual([]);
  });

  it.each([
    [
      'an old transfer with another amount',
      `update transfer set amount_micros = amount_micros + 5 where id = ${transferOf(2)}`,
    ],
    ['sums of usage that differ', 'update usage_day set total_micros = total_micros + 5'],
  ])('leaves to the whole proof: %s', async (_, tampering) => {
    await asSuperuser(db, tampering);
    expect(await since()).toEqual([]);
    expect(await whole()).not.toEqual([]);
  });
});

it('PostgreSQL finds that records with any characters fit their links', async () => {
  const odd = `"quotes" \\ / \n\t\u0001\u007f \u2028 ünï 🦄`;
  await db.transaction(async (tx) => {
    await post(tx, account, {
      ...{ kind: 'adjustment', debit: ADJUSTMENT, credit: available(account), amountMicros: 1n },
      ...{
        externalKey: odd,
        description: odd,
        periodFrom: new Date(5),
        periodTo: new Date('2026-11-30T12:00:00.100Z'),
      },
    });
    await record(tx, account, account, { type: 'account.resumed', actor: { ...SYSTEM, name: odd } });
  });
  await link();
  for (const [statement, given] of [
    [FIT_TRANSFERS, ['ledger', 0n, 100n]],
    [FIT_ENTRIES, ['', 0n, '-infinity']],
  ] as const) {
    const { links, fitting } = (await statement.first(db, [...given]))!;
    expect(links).toBeGreaterThan(1);
    expect(fitting).toBe(links);
  }
});

describe('A mark', () => {
  it('counts only if a key of the service made it', async () => {
    expect(await findMark(db, VAULT)).toBeUndefined();
    await keepMark(db, VAULT, mark);
    expect(await findMark(db, VAULT)).toEqual(mark);
    const other = Buffer.alloc(32, 9);
    expect(await findMark(db, new Vault(other))).toBeUndefined();
    expect(await findMark(db, new Vault(other, Buffer.alloc(32, 7)))).toEqual(mark);
    await db.query(`update proof_mark set text = replace(text, '"number":"4"', '"number":"5"')`);
    expect(await findMark(db, VAULT)).toBeUndefined();
  });

  it('of an earlier day covers less, so a thief gains nothing by putting it back', async () => {
    const earlier = mark;
    mark = await takeMark();
    await asSuperuser(
      db,
      `update transfer set amount_micros = amount_micros + 5 where id = ${transferOf(6)};
        update balance set available_micros = available_micros + 5`,
    );
    expect(await since(earlier)).not.toEqual([]);
  });
});

describe('The worker with many transfers', () => {
  const logged: string[] = [];
  const proving = booksProcess({ db, vault: VAULT, manyTransfers: 1, log: (line) => void logged.push(line) });
  const READS_ALL = /from transfer union all select credit/;
  const prove = async () => {
    const outcome = await proving.steps.prove!({} as never);
    await db.transaction(async (tx) => outcome.commit?.(tx));
    return (await db.query<{ status: string }>(`select status from health where component = 'books'`))[0]!.status;
  };
  const isWhole = async () => (await queriesOf(db, prove)).some(({ text }) => READS_ALL.test(text));

  it('proves everything first and after a week, and on other days what came since', async () => {
    expect([await isWhole(), await isWhole()]).toEqual([true, false]);
    await keepMark(db, VAULT, { ...mark, provenAt: new Date(Date.now() - 7 * 86_400_000) });
    expect([await isWhole(), await isWhole()]).toEqual([true, false]);
    expect(logged).toEqual([]);
  });

  it('names a fault by the whole proof on the same day', async () => {
    expect(await prove()).toBe('operational');
    await asSuperuser(db, 'update balance set available_micros = available_micros + 1');
    expect(await prove()).toBe('major_outage');
    expect(logged.at(-1)).toContain(`The books do not balance. balance, row ${account}`);
  });

  it('keeps no mark while the chains are wrong', async () => {
    await asSuperuser(db, `update audit_entry set actor_name = 'somebody'`);
    expect(await prove()).toBe('operational');
    expect(logged.at(-1)).toContain('The records are not as the service wrote them.');
    expect(await findMark(db, VAULT)).toBeUndefined();
  });
});
