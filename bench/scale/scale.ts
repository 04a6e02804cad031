/**
 * `npm run bench:scale -- [servers] [servers at first]`: compares the cost of work in a small database with that in a large
 * one. Only work that reads everything may cost more there, and no more for each row.
 */
import { Database } from '../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { newFolder, removeFolder } from '../../test/setup/spawn.ts';
import { run, stops } from '../run.ts';
import { type Cost, costOf, prepareMeasures } from './measure.ts';
import { grow } from './seed.ts';
import { allWork, type Work } from './work.ts';

const ROUNDS = 3;
/** Nothing needs to survive a crash. The settings are those of a small server of its own. */
const FLAGS = [
  ...['shared_preload_libraries=pg_stat_statements', 'fsync=off', 'synchronous_commit=off', 'full_page_writes=off'],
  ...['wal_level=minimal', 'max_wal_senders=0', 'max_wal_size=8GB', 'shared_buffers=1GB', 'autovacuum=off', 'jit=off'],
];

await run(bench);

async function bench() {
  const [large = 1_000_000, small = 10_000] = process.argv.slice(2).map(Number);
  const folder = newFolder(process.env.SCALE_FOLDER);
  stops.push(() => removeFolder(folder));
  const postgres = await startEmbeddedPostgres(folder, FLAGS);
  stops.push(postgres.stop);
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  const db = await Database.open(postgres.ownerUrl, { poolSize: 4 });
  stops.push(() => db.close());
  await prepareMeasures(db);
  await grow(db, 1, small);
  const works = await allWork(db, folder);
  const before: Cost[] = [];
  for (const work of works) before.push(await measured(db, work));
  await grow(db, small + 1, large);
  const [few, many] = [small, large].map((servers) => `${servers} servers`.padStart(24));
  console.log(`${'Milliseconds and pages'.padEnd(48)} ${few} ${many}  pages`);
  for (const [index, work] of works.entries()) {
    const cost = await measured(db, work);
    // The pages of work that reads everything are compared by the row.
    const factor = cost.pages / Math.max(1, before[index]!.pages) / (work.kind === 'whole' ? large / small : 1);
    console.log(`${work.name.padEnd(48)} ${shown(before[index]!)} ${shown(cost)}  ×${factor.toFixed(2)}`);
  }
}

function shown({ ms, pages }: Cost): string {
  return `${ms.toFixed(1).padStart(11)} ${String(pages).padStart(12)}`;
}

/** Measures work a few times, and returns the cheapest run. Work that reads everything runs once. */
async function measured(db: Database, { kind, before, run }: Work): Promise<Cost> {
  const runs: Cost[] = [];
  for (let round = 0; round < (kind === 'whole' ? 1 : ROUNDS); round++) {
    await before?.();
    runs.push(await costOf(db, run));
  }
  return runs.toSorted((a, b) => a.ms - b.ms)[0]!;
}
