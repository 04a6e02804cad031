/** The commands of docs/operate/archives.md work as printed, with other folders, and the customer notices nothing. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { emptyDatabase, runCommand } from '../setup/archives.ts';
import { graphqlClient, MACHINE, newFolder, removeFolder, restClient, spawnService } from '../setup/spawn.ts';

const APP = join(import.meta.dirname, '..', '..');
const PAGE = readFileSync(join(APP, 'docs/operate/archives.md'), 'utf8');
const LOGIN = { email: 'one@example.org', password: 'a long password of one' };

/** Returns the first block of commands below a heading. */
const blockOf = (heading: string): string =>
  /\n```\n([\s\S]*?)\n```\n/.exec(PAGE.slice(PAGE.indexOf(`${heading}\n`)))![1]!;

/** Runs a block of the page in another home. The tests start and stop the service themselves. */
async function runBlock(heading: string, home: string, changes: Record<string, string> = {}): Promise<string> {
  const own = { 'runuser -u freehold -- ': '', '-o freehold -g freehold ': '', '/root/': `${home}/root/` };
  const folders = { '/srv/freehold/app': APP, '/srv/freehold': home };
  const script = Object.entries({ ...own, ...folders, ...changes }).reduce(
    (text, [printed, used]) => text.replaceAll(printed, used),
    blockOf(heading),
  );
  const environment = { ...MACHINE, PATH: `${join(home, 'bin')}:${process.env.PATH}` };
  const { stdout } = await promisify(execFile)('bash', ['-ec', script], { env: environment });
  return stdout;
}

/** Makes a home with a program `systemctl` that does nothing. */
function newHome(): string {
  const home = newFolder();
  onTestFinished(() => removeFolder(home));
  for (const folder of ['bin', 'root']) mkdirSync(join(home, folder));
  symlinkSync('/bin/true', join(home, 'bin', 'systemctl'));
  return home;
}

/** Starts the service, lets the customer log in, and stops it. */
async function logIn(environment: Record<string, string>): Promise<void> {
  const service = await spawnService(environment);
  onTestFinished(() => service.kill());
  expect(await restClient(service.url)('POST', '/v1/auth/login', LOGIN)).toMatchObject({ status: 200 });
  await service.stop();
}

it('The guide brings an installation to a new machine, then to another PostgreSQL, and back', async () => {
  const home = newHome();
  const data = join(home, 'data');
  const service = await spawnService({ DATA_DIR: data });
  onTestFinished(() => service.kill());
  expect(await restClient(service.url)('POST', '/v1/auth/register', LOGIN)).toMatchObject({ status: 200 });
  expect(await runBlock('# Archives', home)).toMatch(/has \d+ tables[\s\S]*The archive is complete: /);
  const { data: read } = await graphqlClient(
    service.graphql,
    service.operatorToken,
  )('{ operatorEvents(type: "backup.noted") { data { data } } }');
  expect(read.operatorEvents.data).toMatchObject([{ data: { archive: 'first.age' } }]);
  await service.stop();

  const next = newHome();
  copyFileSync(join(data, 'secret-key'), join(next, 'root', 'secret-key'));
  copyFileSync(join(home, 'first.age'), join(next, 'root', 'last.age'));
  expect(await runBlock('## After a disaster', next)).toMatch(/The books balance[\s\S]*as it was written/);
  const dataDir = join(next, 'data');
  await logIn({ DATA_DIR: dataDir });

  const { environment } = await emptyDatabase(onTestFinished);
  const urls = {
    'postgres://freehold_service:secret@db.example.org/freehold': environment.DATABASE_URL,
    'postgres://freehold_owner:secret@db.example.org/freehold': environment.MIGRATION_DATABASE_URL,
  };
  expect(await runBlock('## Moving to your own PostgreSQL', next, urls)).toContain('The books balance');
  const SECRET_KEY = readFileSync(join(dataDir, 'secret-key'), 'utf8').trim();
  await logIn({ DATA_DIR: dataDir, SECRET_KEY, ...environment });

  const file = join(next, 'back.age');
  expect(await runCommand('export', { SECRET_KEY, ...environment }, file)).toMatchObject({ code: 0 });
  renameSync(join(dataDir, 'postgres'), join(dataDir, 'earlier'));
  expect(await runCommand('import', { SECRET_KEY, DATA_DIR: dataDir }, file)).toMatchObject({ code: 0 });
  await logIn({ DATA_DIR: dataDir });
});
