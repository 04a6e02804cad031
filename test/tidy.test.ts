/** The house keeps its own rules. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => file && existsSync(file));
const sources = files.filter((file) => file.endsWith('.ts'));
const read = (file: string) => readFileSync(file, 'utf8');

/** A place and its allowed imports, of values and of types. The first matching place decides. */
const RULES: [place: RegExp, may: RegExp, mayAsType?: RegExp][] = [
  [/^((start|main|listeners|secret-files)\.ts$|commands\/|test\/|bench\/)/, /./],
  [/^(config(-\w+)?|vitest\.config)\.ts$/, /^config-\w+\.ts$|^entities\/networks\.ts$/],
  // A separate, published program.
  [/^facades\/stdio\//, /^facades\/stdio\//],
  [/^facades\/client\//, /^facades\/client\//],
  [/^facades\/cli\//, /^facades\/(cli|client)\//],
  [/^facades\//, /^(facades\/|schema\/index\.ts$)/],
  [/^schema\//, /^(schema|resolvers)\/|^entities\/(errors|money|networks)\.ts$/, /^entities\//],
  [/^resolvers\//, /^(resolvers|entities)\/|^provisioning\/index\.ts$/],
  [/^provisioning\/.*\/drivers\//, /^provisioning\/.*\/drivers\//],
  [/^provisioning\//, /^(provisioning|entities)\//],
  [/^entities\//, /^entities\//],
];

interface Import {
  from: string;
  to: string;
  asType: boolean;
}
function importsOf(file: string): Import[] {
  const text = read(file);
  const statements = text.matchAll(/^(?:import|export)( type)? ?([^;]*?)from '(\.[^']+)';|^import '(\.[^']+)';/gms);
  const found = [...statements].map(([, type, , from, bare]) => ({ path: from ?? bare!, asType: Boolean(type) }));
  const inline = [...text.matchAll(/\bimport\('(\.[^']+)'\)/g)].map(([, path]) => ({ path: path!, asType: true }));
  return [...found, ...inline].map(({ path, asType }) => ({
    from: file,
    to: normalize(join(dirname(file), path)),
    asType,
  }));
}
const imports = sources.flatMap(importsOf);

/** The files that drivers with their own folder may share. */
const ABOVE_DRIVERS = ['driver.ts', 'image-store.ts', 'json-rpc.ts', 'nodes.ts', 'extended-key.ts'];

/** Whether vitest runs it. */
const isRun = (file: string): boolean => /\.(test|engine|chain|metal)\.ts$/.test(file);

/** Finds the imports that form circles, by removing all others from both ends. */
function circular(left: Import[]): Import[] {
  const importers = new Set(left.map(({ from }) => from));
  const imported = new Set(left.map(({ to }) => to));
  const rest = left.filter(({ from, to }) => importers.has(to) && imported.has(from));
  return rest.length < left.length ? circular(rest) : rest;
}

/** The most files that a folder of sources may have. */
const FOLDER_MAX = 20;

describe('The house', () => {
  it('lets a file import only what its place allows', () => {
    const wrong = imports.filter(({ from, to, asType }) => {
      const rule = RULES.find(([place]) => place.test(from));
      return !rule || !(rule[1].test(to) || (asType && rule[2]?.test(to)));
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
    expect(imports.length).toBeGreaterThan(100);
  });

  it('has no circle of imports, type imports included', () => {
    expect(circular(imports).map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it(`keeps folders of sources to ${FOLDER_MAX} files`, () => {
    const folders = Map.groupBy(
      // Each migration is a file for ever.
      files.filter((file) => !file.startsWith('test/') && !file.endsWith('.sql')),
      dirname,
    );
    expect([...folders].filter(([, inside]) => inside.length > FOLDER_MAX).map(([folder]) => folder)).toEqual([]);
  });

  it('gives a noun with two files a folder, and keeps a single file in the folder above', () => {
    const code = files.filter((file) => /^(entities|schema|resolvers|provisioning|facades)\//.test(file));
    const folders = Map.groupBy(code, dirname);
    const above = new Set([...folders.keys()].map(dirname));
    expect([...folders].filter(([folder, { length }]) => length < 2 && !above.has(folder))).toEqual([]);
  });

  it('lets a driver import only its siblings, and the shared files of the folder above', () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        /\/drivers\//.test(from) &&
        from.startsWith('provisioning') &&
        dirname(from) !== dirname(to) &&
        !ABOVE_DRIVERS.some((file) => join(dirname(from), '..', file) === to),
    );
    expect(wrong).toEqual([]);
  });

  it('has no hooks in shared test modules: test files share a process, and the first would stop it', () => {
    const shared = sources.filter(
      (file) => file.startsWith('test/') && /^(before|after)(All|Each)\(/m.test(read(file)),
    );
    const importers = (file: string): string[] =>
      imports.filter(({ to }) => to === file).flatMap(({ from }) => (isRun(from) ? [from] : importers(from)));
    const wrong = shared.filter((file) => !isRun(file) && new Set(importers(file)).size > 1);
    expect(wrong).toEqual([]);
    expect(shared.some((file) => !isRun(file))).toBe(true);
  });

  it('ends what tests start by atEnd alone: vitest ignores an afterAll that a test or a hook calls', () => {
    const own = ['test/setup/end.ts', 'test/setup/each-file.ts', 'test/tidy.test.ts'];
    expect(sources.filter((file) => !own.includes(file) && /\bafterAll\b/.test(read(file)))).toEqual([]);
  });

  it('reads the environment only in config.ts and in separate packages', () => {
    const readers = sources.filter(
      (file) =>
        !/^(config\.ts|facades\/(stdio|cli|downloads)\/|test\/|bench\/)/.test(file) &&
        read(file).includes('process.env'),
    );
    expect(readers).toEqual([]);
  });

  it('gives every file a meaningful name', () => {
    expect(
      files.filter((file) => /(^|\/)(utils?|helpers?|common|services?|managers?|misc)(\/|\.ts$)/.test(file)),
    ).toEqual([]);
  });

  it('keeps files to 300 lines', () => {
    const written = sources.filter((file) => !/^\/\*\* .*Made by /.test(read(file)));
    expect(written.filter((file) => read(file).split('\n').length > 301)).toEqual([]);
  });

  it('leaves no open marks and no disabled tests', () => {
    const marks = new RegExp(
      ['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X:', 'HA' + 'CK'].map((mark) => `\\b${mark}\\b`).join('|'),
    );
    expect(files.filter((file) => /\.(ts|md|graphql)$/.test(file) && marks.test(read(file)))).toEqual([]);
    expect(
      sources.filter(
        (file) => file !== 'test/tidy.test.ts' && /\b(it|test|describe)\.(skip|todo|only)\(/.test(read(file)),
      ),
    ).toEqual([]);
  });

  it('pins every dependency, and lets only the named packages run install scripts', () => {
    const { dependencies, devDependencies, allowScripts } = JSON.parse(read('package.json'));
    const ranges = Object.entries({ ...dependencies, ...devDependencies }).filter(
      ([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version as string),
    );
    expect(ranges).toEqual([]);
    const lock = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { hasInstallScript?: boolean; integrity?: string; optional?: boolean }>;
    };
    const scripted = Object.entries(lock.packages).filter(([path, { hasInstallScript }]) => path && hasInstallScript);
    expect(
      scripted.map(([path]) => path.replace(/^.*node_modules\//, '')).filter((name) => !(name in allowScripts)),
    ).toEqual([]);
    expect(
      Object.entries(lock.packages).filter(([path, { integrity }]) => path && !integrity?.startsWith('sha512-')),
    ).toEqual([]);
  });
});
