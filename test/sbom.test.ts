/** The list of packages of a version: complete, exact, and the same each time. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { sbomOf, writeSbom } from '../facades/downloads/sbom.ts';
import { newFolder, removeFolder } from './setup/spawn.ts';

const ROOT = join(import.meta.dirname, '..');
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));

/** Copies what npm reads. */
function copyInto(folder: string): string {
  mkdirSync(folder);
  for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(ROOT, name), join(folder, name));
  return folder;
}
function folderForTest(): string {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
}

it('The list has each package for production, with its version, its checksum and its licence', () => {
  const { bomFormat, metadata, components } = JSON.parse(sbomOf(ROOT).toString());
  expect([bomFormat, metadata.component['bom-ref']]).toEqual(['CycloneDX', `freehold@${packages[''].version}`]);
  const locked = Object.entries<{ version: string; dev?: boolean }>(packages)
    .filter(([path, { dev }]) => path && !dev)
    .map(([path, { version }]) => `${path.replace(/.*node_modules\//, '')}@${version}`);
  expect(components.map((one: Record<string, string>) => one['bom-ref']).sort()).toEqual([...new Set(locked)].sort());
  for (const one of components) {
    expect([one.hashes[0].alg, one.hashes[0].content]).toEqual(['SHA-512', expect.stringMatching(/^[0-9a-f]{128}$/)]);
    expect(one.licenses).not.toEqual([]);
  }
});

it('The same lock file gives the same bytes in each folder and at each time', () => {
  const folder = folderForTest();
  const [first, second] = [copyInto(join(folder, 'one')), copyInto(join(folder, 'two'))];
  expect(sbomOf(first).equals(sbomOf(second))).toBe(true);
});

it('A list of one installation leaves out the packages of other systems', () => {
  const folder = copyInto(join(folderForTest(), 'one'));
  const { version } = packages['node_modules/fastify'];
  mkdirSync(join(folder, 'node_modules/fastify'), { recursive: true });
  writeFileSync(join(folder, 'node_modules/fastify/package.json'), JSON.stringify({ name: 'fastify', version }));
  const { components, dependencies } = JSON.parse(sbomOf(folder, { installed: true }).toString());
  expect(components.map(({ name }: { name: string }) => name)).toEqual(['fastify']);
  expect(dependencies).toEqual([
    { ref: expect.stringMatching(/^freehold@/), dependsOn: [`fastify@${version}`] },
    { ref: `fastify@${version}`, dependsOn: [] },
  ]);
});

it('A checksum lies beside the list', () => {
  const folder = folderForTest();
  writeSbom(join(folder, 'freehold.cdx.json'), Buffer.from('{}\n'));
  expect(execFileSync('sha256sum', ['-c', 'freehold.cdx.json.sha256'], { cwd: folder, encoding: 'utf8' })).toBe(
    'freehold.cdx.json: OK\n',
  );
});
