/** The command that proves the books. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { newId } from '../../entities/ids.ts';
import { available, gateway, openBalance, post } from '../../entities/payments/ledger.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { MACHINE } from '../setup/spawn.ts';

const VERIFY = join(import.meta.dirname, '..', '..', 'verify.ts');
const verify = (DATABASE_URL: string) =>
  new Promise<{ code: number; output: string }>((done) => {
    execFile(process.execPath, [VERIFY], { env: { ...MACHINE, DATABASE_URL } }, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    );
  });

it('npm run verify reports balanced books, or the wrong row', async () => {
  const url = await newDatabaseUrl();
  const db = await Database.open(url, { poolSize: 2 });
  onTestFinished(() => db.close());
  const account = newId('acct');
  await db.transaction((tx) => openBalance(tx, account));
  await db.transaction((tx) =>
    post(tx, account, {
      ...{ kind: 'topup', debit: gateway('test'), credit: available(account), amountMicros: 5_000_000n },
      ...{ externalKey: 'one', description: 'test' },
    }),
  );
  const right = await verify(url);
  expect(right).toMatchObject({ code: 0 });
  expect(right.output).toMatch(/available +5 USD[\s\S]*The books balance: 1 transfers/);
  await db.query('update balance set available_micros = available_micros - 1');
  const wrong = await verify(url);
  expect(wrong).toMatchObject({ code: 1 });
  expect(wrong.output).toContain(`WRONG: balance ${account}`);
});

it('npm run verify explains in a sentence why it failed', async () => {
  const { code, output } = await verify('postgres://nobody@127.0.0.1:1/nothing');
  expect(code).toBe(1);
  expect(output).toMatch(/^The books cannot be verified\. .*ECONNREFUSED/);
});
