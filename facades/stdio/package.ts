/**
 * `npm run package`: builds the stdio downloads in dist/, from where the service serves them. The same sources and the
 * same PUBLIC_URL give the same bytes.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { zipSync } from 'fflate';
import { manifestOf, type Own, serverJsonOf } from './describe.ts';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '..', '..');
const BUNDLE = 'dist/freehold-mcp.js';
/** The modules of an MCPB bundle have no package.json that gives their type, so their name has to. */
const ENTRY = 'server/freehold-mcp.mjs';

/**
 * @param folder the target folder; each file appears there complete
 * @param publicUrl the default address in the bundle and in server.json, without a slash at its end
 * @returns the file names with their SHA-256 in hex
 */
export function buildPackage(folder: string, publicUrl: string): Map<string, string> {
  const own: Own & { scripts: { build: string } } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'));
  const staging = mkdtempSync(join(tmpdir(), 'freehold-package-'));
  try {
    for (const name of ['package.json', 'README.md', 'LICENSE', 'src'])
      cpSync(join(HERE, name), join(staging, name), { recursive: true });
    bundle(staging, own.scripts.build);
    sameModes(staging);
    const [tgz, mcpb] = [`${own.name}-${own.version}.tgz`, `${own.name}-${own.version}.mcpb`];
    const files = new Map<string, Uint8Array>([
      [tgz, packed(staging, tgz)],
      [mcpb, zipped(staging, manifestOf(own, publicUrl, ENTRY))],
    ]);
    const sums = { tgz: sha256(files.get(tgz)!), mcpb: sha256(files.get(mcpb)!) };
    files.set('server.json', json(serverJsonOf(own, publicUrl, sums)));
    const checksums = new Map([...files].map(([name, content]) => [name, sha256(content)]));
    files.set('SHA256SUMS', Buffer.from([...checksums].map(([name, sum]) => `${sum}  ${name}\n`).join('')));
    publish(folder, files);
    return checksums;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** Bundles one file without dependencies, by the build command in the package itself, so that users can rebuild it. */
function bundle(staging: string, command: string): void {
  const metafile = join(staging, 'meta.json');
  const given = command.split(' ').slice(1);
  const args = [...given.filter((arg) => !arg.startsWith('--outfile=')), `--outfile=${join(staging, BUNDLE)}`];
  const esbuild = join(ROOT, 'node_modules', '.bin', 'esbuild');
  execFileSync(esbuild, [...args, `--metafile=${metafile}`, '--log-level=warning'], { cwd: HERE, stdio: 'inherit' });
  const { inputs } = JSON.parse(readFileSync(metafile, 'utf8')) as { inputs: Record<string, unknown> };
  writeFileSync(join(staging, 'THIRD-PARTY-LICENSES'), licences(Object.keys(inputs)));
  rmSync(metafile);
}

/** npm keeps file modes, which depend on the umask of the checkout. */
function sameModes(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    chmodSync(path, entry.isDirectory() ? 0o755 : 0o644);
    if (entry.isDirectory()) sameModes(path);
  }
}

/** Returns the licences of all bundled packages, which require their text in the copy. */
function licences(inputs: string[]): string {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const parts = [...folders].sort().map((folder) => {
    const at = join(HERE, folder);
    const { name, version, license } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'));
    const file = readdirSync(at).find((one) => /^licen[cs]e/i.test(one));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(join(at, file), 'utf8').trim() : ''}\n`;
  });
  return parts.join(`\n${'-'.repeat(78)}\n\n`);
}

function packed(staging: string, name: string): Uint8Array {
  execFileSync('npm', ['pack', '--ignore-scripts', '--loglevel=error'], {
    cwd: staging,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return readFileSync(join(staging, name));
}

/**
 * Packs the bundle without `mcpb pack`, which writes the time of packing: this uses npm's fixed time in every time
 * zone.
 */
function zipped(staging: string, manifest: object): Uint8Array {
  const file = (name: string) => readFileSync(join(staging, name));
  const mtime = new Date(1985, 9, 26, 8, 15);
  const entries = {
    'manifest.json': json(manifest),
    [ENTRY]: file(BUNDLE),
    'README.md': file('README.md'),
    LICENSE: file('LICENSE'),
    'THIRD-PARTY-LICENSES': file('THIRD-PARTY-LICENSES'),
  };
  return zipSync(entries, { level: 9, mtime });
}

/**
 * Renames finished files into place, so a concurrent download gets the old file or the new one. Checksums come last.
 */
function publish(folder: string, files: Map<string, Uint8Array>): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of files) {
    const path = join(folder, name);
    if (existsSync(path) && Buffer.compare(readFileSync(path), content) === 0) continue;
    writeFileSync(`${path}.new`, content);
    chmodSync(`${path}.new`, 0o644);
    renameSync(`${path}.new`, path);
  }
}

const json = (value: object): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
const sha256 = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

if (import.meta.main) {
  const publicUrl = (process.env.PUBLIC_URL?.trim() || 'http://localhost:3000').replace(/\/+$/, '');
  if (!/^https?:$/.test(URL.parse(publicUrl)?.protocol ?? '')) {
    console.error('PUBLIC_URL is wrong: expected a URL with http: or https:.');
    process.exit(2);
  }
  const folder = resolve(ROOT, 'dist');
  for (const [name, sum] of buildPackage(folder, publicUrl)) console.log(`${sum}  ${join(folder, name)}`);
  console.log(`\nFor ${publicUrl} (PUBLIC_URL). The service serves them at /downloads.`);
}
