/**
 * `npm run package`: builds the downloads in dist/, from where the service serves them. The same sources and the same
 * PUBLIC_URL give the same bytes.
 */
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { zipSync } from 'fflate';
import { manifestOf, serverJsonOf, type StdioPackage } from './describe.ts';
import { type Built, type Own, withPackage } from './archive.ts';
import { sbomOf, writeSbom } from './sbom.ts';
import { wheelOf } from './wheel.ts';

const FACADES = join(import.meta.dirname, '..');
/** The modules of an MCPB bundle have no package.json that gives their type, so their name has to. */
const ENTRY = 'server/freehold-mcp.mjs';
/** The packages of which users need nothing but the archive. */
const CLIENTS = ['client', 'cli'];

type Files = ReadonlyMap<string, Uint8Array>;

/**
 * @param folder the target folder; each file appears there complete
 * @param publicUrl the default address in the bundle and in server.json, without a slash at its end
 * @returns the file names with their SHA-256 in hex
 */
export function buildPackages(folder: string, publicUrl: string): Map<string, string> {
  const clients = CLIENTS.map((name) =>
    withPackage<Own, [string, Uint8Array]>(join(FACADES, name), ({ own, archive }) => [
      `${own.name}-${own.version}.tgz`,
      archive,
    ]),
  );
  const { name, wheel } = wheelOf(join(FACADES, 'client/python'));
  const files = new Map([...stdioFiles(publicUrl), ...clients, [name, wheel]]);
  const checksums = new Map([...files].map(([name, content]) => [name, sha256(content)]));
  publish(folder, new Map([...files, ['SHA256SUMS', sumsOf(checksums)]]));
  return checksums;
}

/** The stdio package, as an archive of npm, as a bundle for MCP hosts, and described for the MCP registry. */
const stdioFiles = (publicUrl: string): Files =>
  withPackage<StdioPackage, Files>(join(FACADES, 'stdio'), (built) => {
    const { own, archive } = built;
    const bundle = bundleOf(built, publicUrl);
    const sums = { tgz: sha256(archive), mcpb: sha256(bundle) };
    return new Map([
      [`${own.name}-${own.version}.tgz`, archive],
      [`${own.name}-${own.version}.mcpb`, bundle],
      ['server.json', json(serverJsonOf(own, publicUrl, sums))],
    ]);
  });

/**
 * Packs the bundle without `mcpb pack`, which writes the time of packing. This uses npm's fixed time in every time zone.
 */
function bundleOf({ own, file }: Built<StdioPackage>, publicUrl: string): Uint8Array {
  const mtime = new Date(1985, 9, 26, 8, 15);
  const entries = {
    'manifest.json': json(manifestOf(own, publicUrl, ENTRY)),
    [ENTRY]: file('dist/freehold-mcp.js'),
    'README.md': file('README.md'),
    LICENSE: file('LICENSE'),
    'THIRD-PARTY-LICENSES': file('THIRD-PARTY-LICENSES'),
  };
  return zipSync(entries, { level: 9, mtime });
}

/**
 * Renames finished files into place, so a concurrent download gets the old file or the new one. Checksums come last.
 */
function publish(folder: string, files: Files): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of files) {
    const path = join(folder, name);
    if (existsSync(path) && Buffer.compare(readFileSync(path), content) === 0) continue;
    writeFileSync(`${path}.new`, content);
    chmodSync(`${path}.new`, 0o644);
    renameSync(`${path}.new`, path);
  }
}

const sumsOf = (checksums: ReadonlyMap<string, string>): Buffer =>
  Buffer.from([...checksums].map(([name, sum]) => `${sum}  ${name}\n`).join(''));
const json = (value: object): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
const sha256 = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

if (import.meta.main) {
  const publicUrl = (process.env.PUBLIC_URL?.trim() || 'http://localhost:3000').replace(/\/+$/, '');
  if (!/^https?:$/.test(URL.parse(publicUrl)?.protocol ?? '')) {
    console.error('PUBLIC_URL is wrong: expected a URL with http: or https:.');
    process.exit(2);
  }
  const root = resolve(FACADES, '..');
  const folder = join(root, 'dist');
  for (const [name, sum] of buildPackages(folder, publicUrl)) console.log(`${sum}  ${join(folder, name)}`);
  // SHA256SUMS lacks this list, so the service does not serve it.
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeSbom(join(folder, `${name}-${version}.cdx.json`), sbomOf(root));
  console.log(`\nFor ${publicUrl} (PUBLIC_URL). The service serves them at /downloads.`);
}
