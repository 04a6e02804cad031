/** The command line against the service, as a script runs it. */
import { execFile, spawn } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

const { publicUrl, newAccount, operator } = await startFreehold();
const home = newFolder();
atEnd(() => removeFolder(home));
const PROGRAM = join(import.meta.dirname, '../../../facades/cli/src/main.ts');
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkm4o3AUy9jM9UwkKx6CTVn0hlpPpAZYSbY9mNu7SYv me';

interface Run {
  code: number | null;
  out: string;
  error: string;
}
/** Runs the program without a terminal. */
function run(
  words: string,
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {},
): Promise<Run> {
  const given = [...words.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [PROGRAM, ...given], { env: { PATH, NODE_COMPILE_CACHE, HOME: home, ...env } });
  const result: Run = { code: null, out: '', error: '' };
  child.stdout.on('data', (chunk) => (result.out += chunk));
  child.stderr.on('data', (chunk) => (result.error += chunk));
  child.stdin.end(input);
  return new Promise((resolve) => child.on('close', (code) => resolve({ ...result, code })));
}

it('The program ends without a word when the reader of its output has ended', async () => {
  const { stderr } = await promisify(execFile)('sh', ['-c', `"${process.execPath}" "${PROGRAM}" --help | true`]);
  expect(stderr).toBe('');
});

/** The environment of a customer with money. */
async function customer(usd: number): Promise<Record<string, string>> {
  const account = await newAccount();
  if (usd) await account.fund(usd);
  return { FREEHOLD_URL: publicUrl, FREEHOLD_TOKEN: account.accessToken };
}

describe('A profile', () => {
  const given = { env: { FREEHOLD_CONFIG: join(home, 'ended.toml') }, input: 'correct horse battery\n' };
  const login = `login ended@example.org --url ${publicUrl} --password-stdin`;

  it('keeps its key until a logout, also one after the end of the key', async () => {
    const register = `register ended@example.org --url ${publicUrl} --password-stdin`;
    expect(await run(register, given)).toMatchObject({ code: 0 });
    expect(await run(login, given)).toMatchObject({ code: 2, error: expect.stringContaining('Log out first') });
    const { out } = await run('api-key list --output json', given);
    expect(await run(`api-key delete ${JSON.parse(out)[0].key_id}`, given)).toMatchObject({ code: 0 });
    expect(await run('balance', given)).toMatchObject({ code: 3 });
    expect(await run('logout', given)).toMatchObject({ code: 0 });
    expect(await run(login, given)).toMatchObject({ code: 0 });
  });
});

describe('A newcomer', () => {
  it('registers, tops up, orders a server, and deletes it', async () => {
    const registered = await run(`register cli@example.org --url ${publicUrl} --password-stdin`, {
      input: 'correct horse battery\n',
    });
    expect(registered).toMatchObject({ code: 0, error: expect.stringContaining('Logged in to') });
    expect(statSync(join(home, '.config/freehold/config.toml')).mode & 0o777).toBe(0o600);
    const paid = await run('topup create 50 --coin btc');
    expect(paid).toMatchObject({ code: 0, error: expect.stringContaining('Credited $50.00') });
    expect(paid.out).toMatch(/Pay {7}\S+ BTC on bitcoin, for \$50\.00[\s\S]*█/);
    writeFileSync(join(home, 'key.pub'), PUBLIC_KEY);
    expect(await run(`ssh-key add ${join(home, 'key.pub')} --name laptop`)).toMatchObject({ code: 0 });
    const ordered = await run('server create --type vps-1 --name web.example.org --label env=prod');
    expect(ordered).toMatchObject({ code: 0, out: expect.stringMatching(/web\.example\.org {2}running/) });
    expect((await run('server list --selector env=prod')).out).toContain('web.example.org');
    const stopped = await run('server stop web.example.org --output json');
    expect(JSON.parse(stopped.out)).toMatchObject({ status: 'stopped' });
    expect((await run('server resize web.example.org --type vps-2')).code).toBe(0);
    expect((await run('usage')).out).toContain('Resize of vps-1 to vps-2');
    const deleted = await run('server delete web.example.org --force');
    expect(deleted).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Deleted web\.example\.org .* went back to the balance/),
    });
    expect(await run('logout')).toMatchObject({ code: 0 });
    expect(await run('balance', { env: { FREEHOLD_URL: publicUrl } })).toMatchObject({
      code: 3,
      error: expect.stringContaining('freehold login'),
    });
  });
});

describe('A script', () => {
  it('gets JSON or YAML on the standard output, and nothing else there', async () => {
    const env = await customer(100);
    const { out } = await run('server create --type vps-1 --output json', { env });
    expect(JSON.parse(out)).toMatchObject({ status: 'running', charged_usd: 6 });
    expect(parse((await run('balance -o yaml', { env })).out)).toMatchObject({ balance_usd: 94 });
    expect(JSON.parse((await run('api GET /v1/servers', { env })).out).data).toHaveLength(1);
    const [types, coins] = await Promise.all(['types', 'coins'].map((name) => run(`catalog ${name} -o json`, { env })));
    expect(JSON.parse(types!.out)[0]).toMatchObject({ code: 'vps-1' });
    expect(JSON.parse(coins!.out)[0]).toMatchObject({ code: 'BTC' });
  });

  it('orders once with an idempotency key', async () => {
    const env = await customer(100);
    const order = 'server create --type vps-1 --no-wait --output json --idempotency-key once';
    const numbers = [await run(order, { env }), await run(order, { env })].map(
      ({ out }) => JSON.parse(out).order_number,
    );
    expect(numbers[0]).toBe(numbers[1]);
  });

  it.each([
    ['server create', 2, "required option '--type <code>'"],
    ['server get web', 2, 'There is no server web'],
    ['server get SRV-0000000000', 4, 'code: not_found'],
    ['server create --type vps-9', 5, 'unknown_service_code'],
    ['server create --type vps-1', 6, 'freehold topup create'],
    ['api POST /v1/servers -d {', 2, 'The body is no JSON'],
    ['balance --profile other', 2, 'There is no profile other'],
    ['completion csh', 2, 'bash, zsh, fish'],
    ['ssh-key add', 2, 'Make one with ssh-keygen'],
    ['server delete', 2, "missing required argument 'server'"],
  ])('learns by the exit code why `%s` failed: %i', async (words, code, says) => {
    const env = { ...(await customer(0)), HOME: join(home, 'nobody') };
    expect(await run(words, { env })).toMatchObject({ code, error: expect.stringContaining(says), out: '' });
  });

  it('learns that the service is away, or the credential wrong', async () => {
    const env = await customer(0);
    expect(await run('balance', { env: { ...env, FREEHOLD_TOKEN: 'svc_live_x' } })).toMatchObject({ code: 3 });
    const away = await run('balance -o json', { env: { ...env, FREEHOLD_URL: 'http://127.0.0.1:9' } });
    expect(away.code).toBe(7);
    expect(JSON.parse(away.error)).toMatchObject({ code: 'no_answer' });
  });

  it('deletes nothing without a terminal and without --force', async () => {
    const env = await customer(100);
    await run('server create --type vps-1 --name kept', { env });
    expect(await run('server delete kept', { env })).toMatchObject({
      code: 2,
      error: expect.stringContaining('Use --force'),
    });
    expect((await run('server list', { env })).out).toContain('kept');
  });

  it('learns by the exit code that a server failed', async () => {
    const env = await customer(100);
    const { data } = await operator('mutation { setStock(region: "ams", serviceCode: "vps-1", total: 0) { total } }');
    expect(data).toBeTruthy();
    const refused = await run('server create --type vps-1 --location ams', { env });
    expect(refused).toMatchObject({ code: 5, error: expect.stringContaining('code: out_of_stock') });
  });
});

it('Every command teaches itself, and the completion knows it', async () => {
  const help = (await run('--help')).out;
  expect(help).toContain('Start with:');
  const known = (await run('__complete')).out.split('\n').map((line) => line.split('\t')[0]!);
  for (const name of known.filter((one) => /^\w/.test(one))) expect(help).toContain(`  ${name}`);
  expect((await run('server create --help')).out).toContain('Example:');
  expect((await run('__complete server')).out).toContain('create\tOrder a server');
  for (const shell of ['bash', 'zsh', 'fish'])
    expect((await run(`completion ${shell}`)).out).toContain('freehold __complete');
});
