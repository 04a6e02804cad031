/** A worker writes an archive each day. */
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { archiveKey } from '../../entities/archive/key.ts';
import { checkArchive } from '../../entities/archive/read.ts';
import { DAILY_ARCHIVE_PROCESS } from '../../provisioning/archives/daily.ts';
import { emptyDatabase, startCommand } from '../setup/archives.ts';
import { newDatabase } from '../setup/database.ts';
import { asAdministrator } from '../setup/postgres.ts';
import { say } from '../setup/say.ts';
import { openShop } from '../setup/shop.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';
import { VAULT } from '../setup/vault.ts';

function newHome(): string {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
}
const dayBefore = (days: number) => new Date(Date.now() - days * 86_400_000);
const named = (at: Date) => `freehold-${at.toISOString().slice(0, 19).replaceAll(':', '')}Z.age`;

async function openArchiving(folder: string, keepDays = 14) {
  const db = await newDatabase();
  const url = asAdministrator((db.source.options as { url: string }).url);
  const shop = await openShop(onTestFinished, { db, archives: { folder, keepDays, url } });
  const task = async () =>
    (
      await db.query<{ error: string | null; restSeconds: number }>(
        `select error, extract(epoch from run_at - now())::float8 as rest_seconds from task where subject = $1`,
        [`cron:${DAILY_ARCHIVE_PROCESS}`],
      )
    )[0]!;
  return { ...shop, task };
}

describe('A worker', () => {
  it('writes an archive that only its owner can read, notes the backup, and rests for a day', async () => {
    const folder = newHome();
    const { db, tick, task } = await openArchiving(folder);
    await tick(DAILY_ARCHIVE_PROCESS);
    const [name, ...others] = readdirSync(folder);
    expect(others).toEqual([]);
    expect(name).toMatch(/^freehold-\d{4}-\d{2}-\d{2}T\d{6}Z\.age$/);
    expect(statSync(join(folder, name!)).mode & 0o777).toBe(0o600);
    const { rows } = await checkArchive(join(folder, name!), [archiveKey(VAULT)]);
    const bytes = statSync(join(folder, name!)).size;
    expect(await db.query(`select subject, data from event where type = 'backup.noted'`)).toEqual([
      { subject: 'database', data: { archive: name, bytes, rows } },
    ]);
    const { error, restSeconds } = await task();
    expect(error).toBeNull();
    expect(restSeconds).toBeGreaterThan(86_000);
  });

  it('deletes old archives and parts of killed ones, and no other file', async () => {
    const folder = newHome();
    const [old, young] = [named(dayBefore(15)), named(dayBefore(13))];
    const [part, youngPart] = [`${named(dayBefore(2))}.partial`, `${named(dayBefore(0.5))}.partial`];
    for (const name of [old, young, part, youngPart, 'mine.age']) writeFileSync(join(folder, name), '');
    utimesSync(join(folder, 'mine.age'), 0, 0);
    const { tick } = await openArchiving(folder);
    await tick(DAILY_ARCHIVE_PROCESS);
    const left = readdirSync(folder);
    expect(left).toHaveLength(4);
    expect(left).toEqual(expect.arrayContaining([young, youngPart, 'mine.age']));
  });

  it('keeps the last archive, however old it is, while it cannot write another one', async () => {
    const folder = newHome();
    const old = named(dayBefore(15));
    writeFileSync(join(folder, old), '');
    const { db, provisioning, newProvisioning, task } = await openArchiving(folder);
    await provisioning.schedule();
    const archives = { folder, keepDays: 14, url: 'postgres://missing@127.0.0.1:1/nothing' };
    await newProvisioning({ archives }).newWorker().drain('periodic');
    expect(readdirSync(folder)).toEqual([old]);
    expect(await db.query(`select from event where type = 'backup.noted'`)).toEqual([]);
    const { error, restSeconds } = await task();
    expect(error).toMatch(/ECONNREFUSED/);
    expect(restSeconds).toBeGreaterThan(60);
  });

  it('without a folder leaves the archive to the other workers', async () => {
    const folder = newHome();
    const { provisioning, newProvisioning, task } = await openArchiving(folder);
    await provisioning.schedule();
    expect(await newProvisioning({ archives: undefined }).newWorker().drain('periodic')).toBeGreaterThan(0);
    expect(readdirSync(folder)).toEqual([]);
    const { error, restSeconds } = await task();
    expect(error).toBeNull();
    expect(restSeconds).toBeLessThan(61);
  });
});

const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;
if (!mayMount) say('Skipped: an archive on a full disk, because this user may mount nothing.');

it.runIf(mayMount)('A full disk leaves no part of an archive', async () => {
  const folder = newHome();
  const db = await newDatabase();
  const url = asAdministrator((db.source.options as { url: string }).url);
  await db.query(`insert into event (id, account_id, type, subject, data)
    select 'evt_' || lpad(n::text, 26, '0'), 'acct_one', 'odd', md5(n::text), '{}' from generate_series(1, 20000) n`);
  const script = join(folder, 'write.ts');
  const write = join(import.meta.dirname, '../../entities/archive/write.ts');
  writeFileSync(
    script,
    `import { writeArchive } from '${write}';
    await writeArchive({ url: '${url}', key: new Uint8Array(32).fill(1), file: '${folder}/disk/one.age' })
      .catch((error) => console.log(error.code));`,
  );
  const output = execFileSync('unshare', [
    ...['-m', 'sh', '-ec'],
    `mkdir ${folder}/disk; mount -t tmpfs -o size=256k tmpfs ${folder}/disk; ${process.execPath} ${script}; ls -A ${folder}/disk`,
  ]);
  expect(output.toString()).toBe('ENOSPC\n');
});

/** The most memory of the processes in bytes. */
const MEMORY_MAX = 300_000_000;

it('A large archive needs little memory', async () => {
  const folder = newHome();
  const db = await newDatabase();
  const url = asAdministrator((db.source.options as { url: string }).url);
  // Random text, which zstd cannot make small: about 160 MB in the archive.
  await db.query(`insert into event (id, account_id, type, subject, data)
    select 'evt_' || lpad(n::text, 26, '0'), 'acct_one', 'odd', n::text, jsonb_build_object('text', (
      select string_agg(encode(sha256((n || ' ' || i)::bytea), 'base64'), '') from generate_series(1, 200) i))
    from generate_series(1, 24000) n`);
  const file = join(folder, 'large.age');
  const peaks = [await peakOf(startCommand('export', { DATABASE_URL: url }, file))];
  const { size: bytes } = statSync(file);
  expect(bytes).toBeGreaterThan(MEMORY_MAX / 2);
  const target = await emptyDatabase(onTestFinished);
  peaks.push(await peakOf(startCommand('import', target.environment, file)));
  say(`An archive of ${bytes} bytes took ${peaks.join(' and ')} bytes of memory.`);
  expect(Math.max(...peaks)).toBeLessThan(MEMORY_MAX);
});

/** Waits for the end of a process. @returns its peak of memory in bytes */
async function peakOf(running: ReturnType<typeof startCommand>): Promise<number> {
  let peak = 0;
  running.stdout!.resume();
  const look = setInterval(() => {
    const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(statusOf(running.pid!)) ?? [];
    peak = Math.max(peak, Number(kilobytes ?? 0) * 1024);
  }, 50);
  const [code] = await once(running, 'exit');
  clearInterval(look);
  expect(code).toBe(0);
  return peak;
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}
