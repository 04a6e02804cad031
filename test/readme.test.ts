import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from './setup/database.ts';
import { newFolder, removeFolder, spawnService } from './setup/spawn.ts';

const run = promisify(execFile);
const readme = readFileSync('README.md', 'utf8');
const quickstart = /## Quickstart[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme)![1]!;

describe('The README', () => {
  it('has a quickstart that works as printed', async () => {
    const folder = newFolder();
    // The simulated payment takes no time, because a busy machine may need the four seconds for the rest.
    const environment = { DATABASE_URL: await newDatabaseUrl(afterAll), SIMULATED_PAYMENT_SECONDS: '0' };
    const service = await spawnService({ DATA_DIR: folder, ...environment });
    // Only the port differs, so the test can run beside another service.
    const lines = quickstart.replace('http://localhost:3000', service.url);
    expect(lines).not.toBe(quickstart);
    const { stdout } = await run('bash', ['-eu', '-c', lines], { timeout: 170_000 });
    const answers = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    await service.stop();
    removeFolder(folder);
    const [tiers, before, key, topUp, funded, running, deleted, after] = answers;
    expect(tiers.data[0].code).toBe('vps-1');
    expect(before.balance_usd).toBe(0);
    expect(key.type).toBe('ssh-ed25519');
    expect(topUp).toMatchObject({ status: 'pending', amount_usd: 50 });
    expect(funded.balance_usd).toBe(50);
    expect(running).toMatchObject({ status: 'running', hostname: 'web', ssh_key_ids: [key.id] });
    expect(deleted.refunded_usd).toBeGreaterThan(5.9);
    expect(after.balance_usd).toBeCloseTo(44 + deleted.refunded_usd, 5);
    expect(answers).toHaveLength(8);
  });

  it('has at most 700 words', () => {
    expect(readme.split(/\s+/).length).toBeLessThanOrEqual(700);
  });
});
