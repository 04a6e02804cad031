/** The documented lines for Tor make an onion service of the documented listener. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../config.ts';
import { atEnd } from '../../setup/end.ts';
import { say } from '../../setup/say.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

const page = readFileSync('docs/operate/install.md', 'utf8');
const torrc = page.match(/```torrc\n([\s\S]+?)```/)![1]!;

const version = spawnSync('tor', ['--version'], { encoding: 'utf8' }).stdout?.match(/version (\d+)\.(\d+)\.(\d+)/);
const number = version ? version.slice(1).reduce((sum, part) => sum * 100 + Number(part), 0) : 0;
const reason = !version ? 'it is not installed' : number < 408 ? 'it is older than 0.4.8' : undefined;
if (reason) say(`Skipped: the lines for Tor, because ${reason} (apt-get install tor).`);

describe('The lines for Tor', () => {
  it('lead to the listener of the same page', () => {
    const listener = page.match(/`ONION_LISTENER=(\d[^`]+)`/)![1]!;
    expect(readConfig({ ONION_LISTENER: listener }).onionListener).toBeDefined();
    expect(torrc).toContain(`HiddenServicePort 80 ${listener}\n`);
  });

  it.skipIf(reason)('are valid, and an unknown form of circuits is not', () => {
    const folder = newFolder();
    atEnd(() => removeFolder(folder));
    const verify = (lines: string) => {
      const file = join(folder, 'torrc');
      // The user of the tests need not own the folder of the page.
      writeFileSync(file, lines.replace(/^(HiddenServiceDir) .+$/m, `$1 ${join(folder, 'onion')}`));
      const options = ['--verify-config', '--defaults-torrc', join(folder, 'none'), '--ignore-missing-torrc'];
      return spawnSync('tor', [...options, '-f', file, '--DataDirectory', join(folder, 'data')], { encoding: 'utf8' });
    };
    const valid = verify(torrc);
    expect([valid.status, valid.stdout]).toEqual([0, expect.stringContaining('Configuration was valid')]);
    expect(verify(torrc.replace('haproxy', 'caddy')).stdout).toContain(
      "HiddenServiceExportCircuitID must be 'haproxy'",
    );
  });
});
