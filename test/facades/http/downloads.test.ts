import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { validateManifest } from '@anthropic-ai/mcpb/node';
import { unzipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import { buildPackages } from '../../../facades/downloads/build.ts';
import { publicServer } from '../../../facades/http/listener.ts';
import { atEnd } from '../../setup/end.ts';
import { freePort, newFolder, removeFolder } from '../../setup/spawn.ts';
import { neverEnds } from '../sample-api.ts';

const publicUrl = 'https://freehold.example.org';
const folder = newFolder();
const built = join(folder, 'built');
const checksums = buildPackages(built, publicUrl);
atEnd(() => removeFolder(folder));

const NAMES = [
  'freehold-mcp-0.2.0.tgz',
  'freehold-mcp-0.2.0.mcpb',
  'server.json',
  'freehold-0.1.0.tgz',
  'freehold-cli-0.1.0.tgz',
  'freehold-0.1.0-py3-none-any.whl',
];
const [TARBALL, BUNDLE] = NAMES as [string, string, string];
const json = (text: string | Uint8Array) => JSON.parse(Buffer.from(text).toString());

async function serve(downloads: string): Promise<string> {
  const app = await publicServer({
    authenticate: async () => null,
    contextOf: (caller) => caller as never,
    publicUrl,
    newRequestId: () => 'req_test',
    onError: (line) => console.error(line),
    mcpSecrets: [Buffer.alloc(32)],
    onCredentialEnd: neverEnds,
    downloads,
  });
  atEnd(() => app.close());
  return app.listen({ port: 0, host: '127.0.0.1' });
}

describe('The package', () => {
  it('has the same bytes when it is built again', () => {
    const again = join(folder, 'again');
    expect(buildPackages(again, publicUrl)).toEqual(checksums);
    expect(readdirSync(again).sort()).toEqual([...NAMES, 'SHA256SUMS'].sort());
    for (const name of readdirSync(again))
      expect(readFileSync(join(again, name)).equals(readFileSync(join(built, name)))).toBe(true);
  });

  it('has a tarball with its source and its licences, and pins its dependencies', () => {
    const read = (file: string) =>
      execFileSync('tar', ['-xzOf', join(built, TARBALL), `package/${file}`], { encoding: 'utf8' });
    const names = execFileSync('tar', ['-tzf', join(built, TARBALL)], { encoding: 'utf8' });
    for (const file of ['dist/freehold-mcp.js', 'src/main.ts', 'README.md', 'LICENSE', 'THIRD-PARTY-LICENSES'])
      expect(names).toContain(`package/${file}\n`);
    const own = json(read('package.json'));
    expect(own).toMatchObject({ name: 'freehold-mcp', version: '0.2.0', license: 'MIT', engines: { node: '>=20' } });
    expect(own.dependencies).toBeUndefined();
    expect(json(readFileSync('package.json')).devDependencies).toMatchObject(own.devDependencies);
    expect(read('THIRD-PARTY-LICENSES')).toContain('@modelcontextprotocol/client 2.4.0 (Apache-2.0)');
    expect(read('dist/freehold-mcp.js')).not.toContain(process.cwd());
  });

  it('of the command line runs from its archive without a network', () => {
    const args = ['--yes', '--offline', './freehold-cli-0.1.0.tgz', '--version'];
    const env = { ...process.env, npm_config_cache: join(folder, 'npm') };
    expect(execFileSync('npx', args, { cwd: built, encoding: 'utf8', env })).toBe('0.1.0\n');
  });

  it('has a bundle that MCP hosts can install, and marks the API key as secret', async () => {
    const port = await freePort();
    const files = unzipSync(readFileSync(join(built, BUNDLE)));
    const unpacked = join(folder, 'unpacked');
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(join(unpacked, name, '..'), { recursive: true });
      writeFileSync(join(unpacked, name), content);
    }
    expect(validateManifest(join(unpacked, 'manifest.json'))).toBe(true);
    const manifest = json(files['manifest.json']!);
    expect(manifest).toMatchObject({ name: 'freehold-mcp', version: '0.2.0', license: 'MIT' });
    expect(manifest.user_config.api_key).toMatchObject({ sensitive: true, required: false });
    expect(manifest.user_config.url.default).toBe(publicUrl);
    const entry = join(unpacked, manifest.server.entry_point);
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const env = { ...process.env, FREEHOLD_URL: `http://127.0.0.1:${port}` };
    const answer = execFileSync(process.execPath, [entry], { input: `${JSON.stringify(ping)}\n`, env });
    expect(json(answer).error.message).toContain(`127.0.0.1:${port}/mcp (ECONNREFUSED)`);
  });

  it('has a description in the format of the MCP registry', () => {
    const server = json(readFileSync(join(built, 'server.json')));
    expect(server.name).toBe(json(readFileSync('facades/stdio/package.json')).mcpName);
    expect(server.name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
    expect(server.description.length).toBeLessThanOrEqual(100);
    expect(server.version).toBe('0.2.0');
    expect(server.remotes[0]).toMatchObject({ type: 'streamable-http', url: `${publicUrl}/mcp` });
    const [npm, mcpb] = server.packages;
    expect(npm).toMatchObject({ registryType: 'npm', identifier: 'freehold-mcp', fileSha256: checksums.get(TARBALL) });
    expect(mcpb).toMatchObject({ registryType: 'mcpb', fileSha256: checksums.get(BUNDLE) });
    expect(mcpb.identifier).toBe(`${publicUrl}/downloads/${BUNDLE}`);
  });
});

describe('The service', () => {
  it('lists the built files, and serves them with valid checksums', async () => {
    const url = await serve(built);
    const list = (await (await fetch(`${url}/downloads`)).json()) as { data: Record<string, unknown>[] };
    expect(list.data.map(({ name }) => name)).toEqual(NAMES);
    const downloaded = join(folder, 'downloaded');
    mkdirSync(downloaded);
    for (const name of [...NAMES, 'SHA256SUMS']) {
      const response = await fetch(`${url}/downloads/${name}`);
      const bytes = Buffer.from(await response.arrayBuffer());
      writeFileSync(join(downloaded, name), bytes);
      const listed = list.data.find((file) => file.name === name);
      if (listed)
        expect(listed).toEqual({
          name,
          url: `${publicUrl}/downloads/${name}`,
          size_bytes: bytes.length,
          sha256: checksums.get(name),
        });
    }
    const verified = execFileSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: downloaded, encoding: 'utf8' });
    expect(verified.trim().split('\n')).toEqual(NAMES.map((name) => `${name}: OK`));
  });

  it.each([
    [TARBALL, 'application/gzip'],
    [BUNDLE, 'application/zip'],
    ['server.json', 'application/json; charset=utf-8'],
    ['SHA256SUMS', 'text/plain; charset=utf-8'],
  ])('serves %s as a file to save, and answers 304 if the client has it', async (name, type) => {
    const url = `${await serve(built)}/downloads/${name}`;
    const { status, headers } = await fetch(url, { method: 'HEAD' });
    expect(status).toBe(200);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': type,
      'content-length': String(readFileSync(join(built, name)).length),
      'content-disposition': `attachment; filename="${name}"`,
      'x-content-type-options': 'nosniff',
      'cache-control': 'public, max-age=60',
    });
    const again = await fetch(url, { headers: { 'if-none-match': headers.get('etag')! } });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  it('serves no other file of the folder or around it', async () => {
    writeFileSync(join(built, 'stray.txt'), 'stray');
    writeFileSync(join(folder, 'secret.txt'), 'secret');
    const url = await serve(built);
    const { port } = new URL(url);
    for (const path of [
      'stray.txt',
      'freehold-mcp-0.1.0.tgz',
      '../secret.txt',
      '..%2Fsecret.txt',
      '..%5Csecret.txt',
      '%2e%2e/secret.txt',
      '%2Fetc%2Fpasswd',
      './server.json/',
      'server.json%00',
      'sha256sums',
      '__proto__',
      '',
    ]) {
      // An HTTP client would normalize the path.
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(`GET /downloads/${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      let answer = '';
      for await (const chunk of socket) answer += chunk;
      expect([path, answer.split('\r\n')[0]]).toEqual([path, 'HTTP/1.1 404 Not Found']);
      expect(answer).toContain('"code":"not_found"');
    }
    expect((await fetch(`${url}/downloads/server.json`, { method: 'DELETE' })).status).toBe(404);
  });

  it('tells the size of a file without reading it', async () => {
    const large = join(folder, 'large');
    mkdirSync(large);
    writeFileSync(join(large, 'SHA256SUMS'), `${'0'.repeat(64)}  large.tgz\n`);
    writeFileSync(join(large, 'large.tgz'), '');
    // Node reads no file of more than 2 GiB at once. The file takes no room on the disk.
    truncateSync(join(large, 'large.tgz'), 3 * 1024 ** 3);
    const response = await fetch(`${await serve(large)}/downloads`);
    expect((await response.json()).data).toMatchObject([{ name: 'large.tgz', size_bytes: 3 * 1024 ** 3 }]);
  });

  it('names the command to run before the first build', async () => {
    const url = await serve(join(folder, 'nowhere'));
    for (const path of ['/downloads', `/downloads/${TARBALL}`, '/downloads/SHA256SUMS']) {
      const response = await fetch(url + path);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({
        code: 'not_found',
        detail: expect.stringContaining('npm run package'),
      });
    }
  });

  it('are a page for people, to which the site links', async () => {
    const url = await serve(built);
    const accept = 'text/html,*/*;q=0.8';
    const page = await fetch(`${url}/downloads`, { headers: { accept } });
    expect(page.headers.get('vary')).toBe('accept');
    const text = await page.text();
    for (const [name, sum] of checksums) {
      expect(text).toContain(`href="/downloads/${name}"`);
      expect(text).toContain(sum);
    }
    expect(await (await fetch(`${url}/docs`, { headers: { accept } })).text()).toContain('href="/downloads"');
    const without = await serve(join(folder, 'nowhere'));
    expect(await (await fetch(`${without}/docs`, { headers: { accept } })).text()).not.toContain('href="/downloads"');
    expect((await fetch(`${without}/downloads`, { headers: { accept } })).headers.get('content-type')).toContain(
      'text/html',
    );
  });
});
