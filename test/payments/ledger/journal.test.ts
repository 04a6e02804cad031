/** The journal of the operator, and closed months. */
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { idFloor, newId } from '../../../entities/ids.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { asOwner, asSuperuser, newDatabaseUrl } from '../../setup/database.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { say } from '../../setup/say.ts';
import { MACHINE } from '../../setup/spawn.ts';

const DATABASE_URL = await newDatabaseUrl();
const { db, dataDir, newAccount, operator } = await startFreehold({ DATABASE_URL });
const account = await newAccount();
await account.topUp(100);
await operator(
  `mutation { adjustBalance(accountId: "${account.id}", amountUsd: -1.5, key: "one", reason: "=HYPERLINK(1), \\"a; b | c\\"") { balanceUsd } }`,
);
const [{ month }] = (await db.query<{ month: string }>(
  `select to_char(now() at time zone 'UTC', 'YYYY-MM') as month`,
)) as [{ month: string }];

const journal = (...given: string[]) =>
  new Promise<{ code: number; output: string }>((done) => {
    const file = join(import.meta.dirname, '..', '..', '..', 'commands', 'journal.ts');
    execFile(process.execPath, [file, ...given], { env: { ...MACHINE, DATABASE_URL } }, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    );
  });
const hasHledger = (() => {
  try {
    return Boolean(execFileSync('hledger', ['--version']));
  } catch {
    say('Skipped: the check of the journal by hledger, because hledger is not installed.');
    return false;
  }
})();

it('The journal of a month is CSV that runs no formula', async () => {
  const { output } = await journal('--month', month);
  const lines = output.split('\r\n');
  expect(lines[0]).toBe('id,time,kind,debit,credit,amount_usd,order_number,description');
  expect(lines).toContainEqual(
    expect.stringMatching(/,topup,gateway:base,available:acct_\w+,100\.000000,TOP-\w+,Top-up in USDC-BASE$/),
  );
  expect(lines).toContainEqual(expect.stringMatching(/,1\.500000,,"'=HYPERLINK\(1\), ""a; b \| c"""$/));
  expect((await journal('--month', '2001-01')).output).toBe(`${lines[0]}\r\n`);
  expect(await journal('--month', 'x')).toMatchObject({
    code: 1,
    output: expect.stringContaining('Usage: npm run journal'),
  });
});

it('The journal has the transfers of a process whose clock was a year behind', async () => {
  const id = `${idFloor('xfr', Date.now() - 365 * 86_400_000)}${'0'.repeat(16)}`;
  await asOwner(
    db,
    `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
      values ($1, $2, 'adjustment', 'fees', 'exchange', 7, $1, 'Late clock')`,
    [id, account.id],
  );
  expect((await journal('--month', month)).output).toContain(`${id},`);
});

it('The journal in the format of hledger has two sides for each transfer', async () => {
  const { output } = await journal('--month', month, '--format', 'hledger');
  expect(output).toMatch(
    /^\d{4}-\d\d-\d\d \* \(xfr_\w+\) Top-up in USDC-BASE {2}; order:TOP-\w+\n {4}liabilities:customers:available:acct_\w+|assets:gateway:base {2}100\.000000 USD\n/m,
  );
  expect(output).toContain('    expenses:adjustment  -1.500000 USD');
});

it.skipIf(!hasHledger)('hledger reads the journal, and agrees with the books', async () => {
  const file = join(dataDir, 'month.journal');
  writeFileSync(file, (await journal('--month', month, '--format', 'hledger')).output);
  execFileSync('hledger', ['-f', file, 'check']);
  expect(execFileSync('hledger', ['-f', file, 'balance', 'assets:gateway:base']).toString()).toContain(
    '100.000000 USD',
  );
});

it('A month closes an hour after its end, and npm run verify then notices a transfer in it', async () => {
  const close = async (which: string) => {
    const { data, errors } = await operator(`mutation { closeMonth(month: "${which}") { month transfers } }`);
    return data?.closeMonth ?? errors[0].message;
  };
  expect(await close(month)).toContain('an hour after its end');
  expect(await close('2026-13')).toContain('a year and a month');
  for (let i = 0; i < 2; i++) expect(await close('2020-02')).toEqual({ month: '2020-02', transfers: 0 });
  expect(await db.query(`select actor_type from audit_entry where action = 'month.closed'`)).toHaveLength(1);
  expect(await proveBooks(db)).toMatchObject({ firstFault: null });
  await asSuperuser(
    db,
    `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description, created_at)
      values ('${newId('xfr')}', '${account.id}', 'adjustment', 'revenue', 'exchange', 1, 'late', 'late', '2020-02-29 12:00Z')`,
  );
  expect(await proveBooks(db)).toMatchObject({ firstFault: { table: 'closed_month', row: '2020-02' } });
});
