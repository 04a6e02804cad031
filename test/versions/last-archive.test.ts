/** An archive of the last version becomes a service of this version, and its customers miss nothing. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { emptyDatabase, runCommand } from '../setup/archives.ts';
import { atEnd } from '../setup/end.ts';
import { MACHINE, newFolder, removeFolder, spawnService } from '../setup/spawn.ts';
import { awaited, logIn, plainClient } from './client.ts';
import { lacking } from './grown.ts';
import { codeOf, readAll } from './journey.ts';
import { ARCHIVE, readLastVersion } from './last-version.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const last = readLastVersion();
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

it('The archive is that of the last version of the changelog, which package.json names', () => {
  const [newest] = /(?<=^## )\d.*$/m.exec(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')) ?? [];
  expect(version).toBe(newest);
  expect(last.version, 'Make it anew: npm run version:archive -- <its commit>').toBe(newest);
});

describe(`After an import of the archive of ${last.version}`, async () => {
  const dataDir = newFolder();
  atEnd(() => removeFolder(dataDir));
  const { environment } = await emptyDatabase(atEnd);
  const imported = await runCommand('import', { ...environment, SECRET_KEY: last.secretKey }, '--moved', ARCHIVE);
  mkdirSync(join(dataDir, 'machines'));
  for (const [name, text] of Object.entries(last.machines)) writeFileSync(join(dataDir, 'machines', name), text);
  const start = (more: Record<string, string>) =>
    spawnService({ ...environment, SECRET_KEY: last.secretKey, DATA_DIR: dataDir, ...more });

  it('the import proves the records', () => {
    expect(imported.output).toContain('The books balance');
    expect(imported.code).toBe(0);
  });

  it('customers log in, and every answer has what it had', async () => {
    const service = await start({ ROLES: 'api' });
    const rest = await logIn(service.url, last.customer);
    const answers = await readAll(service.url, rest, last.day);
    expect(lacking(last.answers, answers)).toEqual([]);
    const { secret, ...given } = last.careful;
    const login = { ...given, totp_code: codeOf(secret) };
    expect(await plainClient(service.url)('POST', '/v1/auth/login', login)).toMatchObject({ status: 200 });
    expect(await service.stop()).toBe(0);
  });

  it('the workers go on, the customer orders a server, and the records are right', async () => {
    const service = await start({ SIMULATED_PROVISION_SECONDS: '0.1', SIMULATED_PAYMENT_SECONDS: '0.1' });
    const rest = await logIn(service.url, last.customer);
    const topUp = await rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });
    await awaited(rest, `/v1/billing/topups/${topUp.body.order_number}`, ({ status }) => status === 'confirmed');
    const ordered = await rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'later' });
    expect(ordered).toMatchObject({ status: 200 });
    await awaited(rest, `/v1/servers/${ordered.body.order_number}`, ({ status }) => status === 'running');
    expect(await service.stop()).toBe(0);
    const env = { ...MACHINE, ...environment, SECRET_KEY: last.secretKey };
    const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'commands/verify.ts')], { env });
    expect(stdout).toContain('The books balance');
  });
});
