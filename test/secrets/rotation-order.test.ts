/** A rotation of SECRET_KEY in the wrong order is refused, and harms nothing. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';
import { freePort, MACHINE, MAIN, newFolder, removeFolder } from '../setup/spawn.ts';

const [OLD, NEW] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string];
const BEFORE = { SECRET_KEY: OLD };
const STEP_2 = { SECRET_KEY: OLD, SECRET_KEY_PREVIOUS: NEW };
const STEP_3 = { SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: OLD };

async function installation() {
  const DATABASE_URL = await newDatabaseUrl();
  const DATA_DIR = newFolder();
  onTestFinished(() => removeFolder(DATA_DIR));
  const start = async (keys: Record<string, string>) => {
    const service = await startFreehold({ DATABASE_URL, DATA_DIR, ROLES: 'api', ...keys });
    onTestFinished(() => service.stop());
    return service;
  };
  /** Runs a program to its end. */
  const run = async (file: string, keys: Record<string, string>) => {
    const [PORT, INTERNAL_PORT] = [String(await freePort()), String(await freePort())];
    const env = { ...MACHINE, DATABASE_URL, DATA_DIR, PORT, INTERNAL_PORT, ROLES: 'api', ...keys };
    return new Promise<{ code: number; output: string }>((done) => {
      execFile(process.execPath, [file], { env, timeout: 300_000 }, (error, out, faults) =>
        done({ code: Number(error?.code ?? 0), output: out + faults }),
      );
    });
  };
  const keys = async () => {
    const db = await Database.open(DATABASE_URL, { poolSize: 1 });
    const found = await db.query('select id from secret_key').finally(() => db.close());
    return found.length;
  };
  const reseal = (given = STEP_3) => run(join(import.meta.dirname, '..', '..', 'commands', 'reseal.ts'), given);
  return { start, failedStart: (given: Record<string, string>) => run(MAIN, given), reseal, keys };
}

it('A process does not seal under a new key while another one could not open that', async () => {
  const { start, failedStart, keys } = await installation();
  const other = await start(BEFORE);
  const output =
    'Freehold cannot start. A process that runs now lacks this SECRET_KEY, and could not open what the key seals. ' +
    'First name the key in SECRET_KEY_PREVIOUS of every process.';
  const failed = await failedStart(STEP_3);
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.output)).toMatchObject({ level: 'fatal', msg: output });
  expect(await keys()).toBe(1);
  await other.stop();
  await start(STEP_2);
  await start(STEP_3);
  expect(await keys()).toBe(2);
});

it('The database forgets no key under which a process still seals', async () => {
  const { start, reseal, keys } = await installation();
  const late = await start(STEP_2);
  await start(STEP_3);
  expect(await reseal()).toEqual({
    code: 1,
    output: expect.stringMatching(
      /The secrets cannot be sealed again\. A process .* under another SECRET_KEY\. Restart every .* run this again\.\n$/,
    ),
  });
  expect(await keys()).toBe(2);
  await late.stop();
  expect(await reseal()).toMatchObject({ code: 0 });
  expect(await keys()).toBe(1);
});

it('A command that comes before the new key is in use does not call for the removal of that key', async () => {
  const { start, reseal } = await installation();
  await start(STEP_2);
  const { code, output } = await reseal(STEP_2);
  expect(code).toBe(0);
  expect(output).toContain('If you still replace it, keep both.');
});
