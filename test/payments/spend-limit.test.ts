import { expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { ADJUSTMENT, available, held, openBalance, type Posting, post } from '../../entities/payments/ledger.ts';
import { asSuperuser, newDatabase } from '../setup/database.ts';

const db = await newDatabase();
const account = newId('acct');
const [free, taken] = [available(account), held(account)];
const posted = (...postings: Posting[]) => db.transaction((tx) => post(tx, account, ...postings));
const common = () => ({ description: 'test', externalKey: newId('xfr') });
const hold = (amountMicros: bigint, more: Partial<Posting> = {}): Posting => ({
  ...{ ...common(), kind: 'hold', debit: free, credit: taken, amountMicros },
  ...more,
});
await db.transaction((tx) => openBalance(tx, account));
await posted({ ...common(), kind: 'topup', debit: ADJUSTMENT, credit: free, amountMicros: 100n });

it('A release takes back its hold in the month of the hold, once', async () => {
  const spender = { credentialId: newId('key'), limitedBy: newId('key') };
  const ids = Object.values(spender);
  const spent = async () =>
    (
      await db.query<{ micros: bigint }>(
        `select micros from spending_month where credential_id = any($1) order by month desc, credential_id`,
        [ids],
      )
    ).map(({ micros }) => micros);
  const number = newId('srv');
  await posted(hold(7n, { ...spender, externalKey: `hold:${number}` }), hold(4n, spender), hold(1n));
  expect(await spent()).toEqual([11n, 11n]);
  for (const [table, time] of Object.entries({ transfer: 'created_at', spending_month: 'month', usage_day: 'day' }))
    await asSuperuser(db, `update ${table} set ${time} = ${time} - interval '1 month'`);
  const release = { ...common(), debit: taken, credit: free, amountMicros: 7n, externalKey: `release:${number}` };
  const times = [await posted({ ...release, kind: 'release' }), await posted({ ...release, kind: 'release' })];
  expect(times).toEqual([1, 0]);
  await posted(hold(3n, spender));
  expect(await spent()).toEqual([3n, 3n, 4n, 4n]);
  expect(await proveBooks(db)).toMatchObject({ balanced: true, firstFault: null });
});
