/**
 * `npm run bench:proof -- [servers] [entries]`: the time and the memory of `npm run verify`, of everything and then since that proof. A
 * server has ten transfers.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Database } from '../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { newFolder, removeFolder } from '../../test/setup/spawn.ts';
import { SECRET_KEY, VAULT } from '../../test/setup/vault.ts';
import { run, stops } from '../run.ts';
import { addChains } from './chains.ts';
import { grow } from './seed.ts';

const FLAGS = [
  ...['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'wal_level=minimal', 'max_wal_senders=0'],
  ...['max_wal_size=8GB', 'shared_buffers=1GB', 'autovacuum=off', 'jit=off'],
];
const VERIFY = join(import.meta.dirname, '..', '..', 'commands', 'verify.ts');
/** Prints the peak of the memory and the processor time of the command. */
const AT_EXIT = `data:text/javascript,process.on('exit',()=>{const u=process.resourceUsage();
  console.log('Command: '+Math.round(u.maxRSS/1024)+' MiB, '+((u.userCPUTime+u.systemCPUTime)/1e6).toFixed(1)+' s of processor time')})`;
/** The servers of the first stage: PostgreSQL plans the other one with their statistics. */
const FIRST = 10_000;

await run(bench);

async function bench() {
  const [servers = 100_000, entries = servers * 2] = process.argv.slice(2).map(Number);
  const folder = newFolder(process.env.SCALE_FOLDER);
  stops.push(() => removeFolder(folder));
  const postgres = await startEmbeddedPostgres(folder, FLAGS);
  stops.push(postgres.stop);
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  const db = await Database.open(postgres.ownerUrl, { poolSize: 2 });
  await grow(db, 1, FIRST);
  await grow(db, FIRST + 1, servers);
  await addChains(db, VAULT, entries, servers / 10);
  // Its temporary function would be a foreign object.
  await db.close();
  for (const given of [[], ['--since-last-proof']]) {
    const began = performance.now();
    const env = { ...process.env, DATABASE_URL: postgres.url, MIGRATION_DATABASE_URL: postgres.ownerUrl, SECRET_KEY };
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', AT_EXIT, VERIFY, ...given], { env });
    console.log(`${stdout}${((performance.now() - began) / 1000).toFixed(1)} s\n`);
  }
}
