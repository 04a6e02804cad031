import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from './setup/database.ts';
import { atEnd } from './setup/end.ts';
import { newFolder, type RunningService, removeFolder, spawnService } from './setup/spawn.ts';

const run = promisify(execFile);
const readme = readFileSync('README.md', 'utf8');
const commandsOf = (markdown: string) => [...markdown.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!);

describe('The commands for customers', () => {
  let service: RunningService;
  const folder = newFolder();
  beforeAll(async () => {
    // Simulations take no time, so that a busy machine has all of its patience for the rest.
    const environment = { SIMULATED_PAYMENT_SECONDS: '0', SIMULATED_PROVISION_SECONDS: '0' };
    service = await spawnService({ DATA_DIR: folder, DATABASE_URL: await newDatabaseUrl(), ...environment });
  });
  atEnd(async () => {
    await service.stop();
    removeFolder(folder);
  });

  /** Runs commands as printed, but for the port, so that the test can run beside another service. */
  async function answersTo(commands: string, place: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Promise<string[]> {
    const lines = commands.replace('http://localhost:3000', service.url);
    expect(lines).not.toBe(commands);
    const { stdout } = await run('bash', ['-eu', '-c', lines], { timeout: 500_000, cwd: folder, ...place });
    return stdout.trim().split('\n');
  }

  it('work with the command line as the quickstart of the README prints them', async () => {
    const [, lines] = /```bash\n([\s\S]*?)```/.exec(readme)!;
    const answers = await answersTo(lines!, { cwd: process.cwd(), env: { ...process.env, XDG_CONFIG_HOME: folder } });
    expect(answers.join('\n')).toMatch(/web +running[\s\S]*Deleted web .* went back to the balance/);
  });

  it('work with curl as the quickstart of the README prints them', async () => {
    const quickstart = commandsOf(readme.slice(readme.indexOf('## Quickstart')))
      .slice(0, 2)
      .join('');
    const answers = (await answersTo(quickstart)).map((line) => JSON.parse(line));
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

  it('work as docs/use/api.md prints them', async () => {
    const commands = commandsOf(readFileSync('docs/use/api.md', 'utf8')).join('\n');
    const answers = (await answersTo(commands)).filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
    expect(answers.filter(({ code }) => code)).toEqual([]);
    const servers = answers.filter(({ order_number, kind }) => order_number && kind);
    expect(servers.map(({ status, service_code, os }) => [status, service_code, os])).toEqual([
      ['running', 'vps-1', 'debian-13'],
      ['stopping', 'vps-1', 'debian-13'],
      ['stopped', 'vps-1', 'debian-13'],
      ['resizing', 'vps-1', 'debian-13'],
      ['stopped', 'vps-2', 'debian-13'],
      ['starting', 'vps-2', 'debian-13'],
      ['running', 'vps-2', 'debian-13'],
      ['rebuilding', 'vps-2', 'debian-13'],
      ['running', 'vps-2', 'debian-12'],
      ['deleting', 'vps-2', 'debian-12'],
    ]);
    const tokens = answers.filter(({ token_type }) => token_type === 'Bearer');
    expect(tokens.map(({ scope }) => scope)).toEqual(['servers billing', 'servers']);
    expect(answers.at(-1)).toMatchObject({ tokens_revoked: expect.any(Number) });
  });
});

describe('The README', () => {
  it('has at most 700 words', () => {
    expect(readme.split(/\s+/).length).toBeLessThanOrEqual(700);
  });

  it('counts the endpoints of the specification', () => {
    const { paths } = JSON.parse(readFileSync('docs/openapi.json', 'utf8')) as { paths: Record<string, object> };
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods as Record<string, object>));
    const specified = operations.filter((operation) => !('x-extension' in operation));
    expect(readme).toContain(` ${specified.length} endpoints`);
  });
});
