import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { atEnd } from '../../../setup/end.ts';
import { startFreehold } from '../../../setup/freehold.ts';
import { newFolder, removeFolder } from '../../../setup/spawn.ts';
import { run } from './commands.ts';
import { openFixtures } from './conformance/server.ts';

const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
/** The least number of passed checks of each revision: a suite without any checks would pass, too. */
const LEAST = [3, 56, 81, 150];

interface Check {
  id: string;
  status: string;
  errorMessage?: string;
}

/** Runs all scenarios of a revision. @returns the exit code, the number of passed checks, and the others */
async function conformance(url: string, revision: string, baseline?: string) {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const expected = baseline === undefined ? [] : ['--expected-failures', baseline];
  const { code, stdout } = await run('conformance', [
    ...['server', '--url', url, '--suite', 'all', '--spec-version', revision, '--output-dir', folder],
    ...expected,
  ]);
  const checks = readdirSync(folder)
    .map((scenario) => join(folder, scenario, 'checks.json'))
    .filter((file) => existsSync(file))
    .flatMap((file) => JSON.parse(readFileSync(file, 'utf8')) as Check[]);
  const unmet = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
  return { code, stdout, unmet, passed: Number(/^Total: (\d+) passed/m.exec(stdout)?.[1]) };
}

const ids = (checks: Check[]) => checks.map(({ id }) => id);
/** The suite recommends resumable streams; the service does not offer them. */
const RECOMMENDED = ['server-sse-priming-event', 'server-sse-retry-field'];

describe('The endpoint with the fixtures of the suite', async () => {
  const fixtures = await openFixtures();
  atEnd(() => fixtures.close());

  it.each(REVISIONS.map((revision, i) => [revision, LEAST[i]!] as const))(
    'conforms to %s in at least %i checks',
    async (revision, least) => {
      const { code, stdout, unmet, passed } = await conformance(fixtures.url, revision);
      expect(ids(unmet)).toEqual(revision === '2025-11-25' ? RECOMMENDED : []);
      expect(code, stdout).toBe(0);
      expect(passed).toBeGreaterThanOrEqual(least);
    },
  );
});

describe('The endpoint of the service', async () => {
  const { publicUrl } = await startFreehold();

  it.each(REVISIONS)('conforms to %s in every check that needs no fixture', async (revision) => {
    const file = join(import.meta.dirname, 'conformance', `product.${revision}.yaml`);
    const { code, stdout, unmet } = await conformance(
      `${publicUrl}/mcp`,
      revision,
      existsSync(file) ? file : undefined,
    );
    // One scenario of the baseline has further checks, which must pass.
    for (const { id, errorMessage } of unmet)
      if (id.startsWith('sep-2575-')) expect(errorMessage).toMatch(/^Not testable: server does not list/);
    expect(code, stdout).toBe(0);
  });
});
