/**
 * `npm run version:archive -- <commit>`: makes the archive of a version by the code of that commit, with all that its customers
 * read. test/versions/last-archive.test.ts proves that this version continues from it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MACHINE, newFolder, type OnEnd, type RunningService, removeFolder, spawnService } from '../setup/spawn.ts';
import { SECRET_KEY } from '../setup/vault.ts';
import { logIn } from './client.ts';
import { readAll, workBegun, workDone } from './journey.ts';
import { ARCHIVE, checkOut, commitOf, FACTS, programOf, type LastVersion } from './last-version.ts';

const QUICK = { SIMULATED_PAYMENT_SECONDS: '0.1', SIMULATED_PROVISION_SECONDS: '0.1' };
/** Nothing ends. */
const SLOW = { SIMULATED_PAYMENT_SECONDS: '3600', SIMULATED_PROVISION_SECONDS: '3600' };

const commit = commitOf(process.argv[2] ?? '');
if (!commit) throw new Error('Usage: npm run version:archive -- <commit>');
const ends: Parameters<OnEnd>[0][] = [];
try {
  await make(commit, (end) => ends.unshift(end));
} finally {
  for (const end of ends) await end();
}

async function make(commit: string, onEnd: OnEnd): Promise<void> {
  const folder = checkOut(commit, onEnd);
  const dataDir = newFolder();
  onEnd(() => removeFolder(dataDir));
  const environment = { DATA_DIR: dataDir, SECRET_KEY };
  const during = async <T>(more: Record<string, string>, work: (service: RunningService) => T) => {
    const service = await start(more);
    return await Promise.resolve(work(service)).finally(() => service.stop());
  };
  const start = (more: Record<string, string>) =>
    spawnService({ ...environment, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', ...more }, programOf(folder));

  const day = new Date().toISOString().slice(0, 10);
  const { customer, careful } = await during(QUICK, workDone);
  await during(SLOW, (service) => workBegun(service, customer));
  const answers = await during({ ROLES: 'api' }, async ({ url }) => readAll(url, await logIn(url, customer), day));

  // The first version has no command for it. A later program exports a database of any earlier one.
  const own = join(folder, 'commands', 'export.ts');
  const file = existsSync(own) ? own : join(import.meta.dirname, '..', '..', 'commands', 'export.ts');
  rmSync(ARCHIVE, { force: true });
  execFileSync(process.execPath, [file, ARCHIVE], { env: { ...MACHINE, ...environment }, stdio: 'inherit' });
  const machines = join(dataDir, 'machines');
  const facts: LastVersion = {
    version: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version,
    commit,
    day,
    secretKey: SECRET_KEY,
    machines: Object.fromEntries(
      readdirSync(machines).map((name) => [name, readFileSync(join(machines, name), 'utf8')]),
    ),
    customer,
    careful,
    answers,
  };
  writeFileSync(FACTS, `${JSON.stringify(facts, undefined, 1)}\n`);
}
