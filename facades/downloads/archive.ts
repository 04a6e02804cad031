/** Archives of npm packages, with the same bytes from the same sources. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** Members of the package.json of a package. */
export interface Own {
  name: string;
  version: string;
  license: string;
  scripts: { build: string };
}
/** A built package. */
export interface Built<Package extends Own> {
  own: Package;
  archive: Uint8Array;
  /** Reads a file of the package. */
  file(name: string): Uint8Array;
}

/**
 * Builds a package, packs it, and gives it to `use`.
 * @param home the folder of its package.json
 */
export function withPackage<Package extends Own, T>(home: string, use: (built: Built<Package>) => T): T {
  const own: Package = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  const staging = mkdtempSync(join(tmpdir(), 'freehold-package-'));
  try {
    for (const name of ['package.json', 'README.md', 'LICENSE', 'src'])
      cpSync(join(home, name), join(staging, name), { recursive: true });
    build(home, staging, own.scripts.build.split(' '));
    sameModes(staging);
    return use({ own, archive: packed(staging, own), file: (name) => readFileSync(join(staging, name)) });
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** Runs the build command in the package itself, so that users can build it again. */
function build(home: string, staging: string, [command = '', ...given]: string[]): void {
  const run = (more: string[]) => {
    const args = [...given.filter((arg) => !arg.startsWith('--outfile=')), ...more];
    execFileSync(join(ROOT, 'node_modules/.bin', command), args, { cwd: home, stdio: 'inherit' });
  };
  if (command === 'tsc') return void run(['--outDir', join(staging, 'dist')]);
  const output = given.find((arg) => arg.startsWith('--outfile='))!.slice('--outfile='.length);
  const metafile = join(staging, 'meta.json');
  run([`--outfile=${join(staging, output)}`, `--metafile=${metafile}`, '--log-level=warning']);
  const { inputs } = JSON.parse(readFileSync(metafile, 'utf8')) as { inputs: Record<string, unknown> };
  writeFileSync(join(staging, 'THIRD-PARTY-LICENSES'), licences(home, Object.keys(inputs)));
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
function licences(home: string, inputs: string[]): string {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const parts = [...folders].sort().map((folder) => {
    const at = join(home, folder);
    const { name, version, license } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'));
    const file = readdirSync(at).find((one) => /^licen[cs]e/i.test(one));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(join(at, file), 'utf8').trim() : ''}\n`;
  });
  return parts.join(`\n${'-'.repeat(78)}\n\n`);
}

function packed(staging: string, { name, version }: Own): Uint8Array {
  execFileSync('npm', ['pack', '--ignore-scripts', '--loglevel=error'], {
    cwd: staging,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return readFileSync(join(staging, `${name}-${version}.tgz`));
}
