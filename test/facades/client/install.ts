/** Installs a published package into a folder, as npm does. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Own, withPackage } from '../../../facades/downloads/archive.ts';

/** Builds and unpacks a package. @returns its folder in node_modules */
export function installed(home: string, folder: string): string {
  return withPackage<Own, string>(home, ({ own, archive }) => {
    const target = join(folder, 'node_modules', own.name);
    mkdirSync(target, { recursive: true });
    const file = join(folder, 'package.tgz');
    writeFileSync(file, archive);
    execFileSync('tar', ['-xzf', file, '-C', target, '--strip-components=1']);
    return target;
  });
}
