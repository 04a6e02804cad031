/** Generates clients from docs/openapi.json with openapi-typescript and @hey-api/openapi-ts, and compiles what they made. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = import.meta.dirname;
const document = join(folder, '../../../../docs/openapi.json');
const made = mkdtempSync(join(tmpdir(), 'freehold-generators-'));
const COMPILE = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'esnext', '--moduleResolution', 'bundler'];

function run(command: string, ...args: string[]): void {
  console.log(`${command} ${args.join(' ')}`);
  execFileSync(join(folder, 'node_modules/.bin', command), args, { cwd: folder, stdio: 'inherit' });
}

try {
  run('openapi-typescript', document, '-o', join(made, 'types.ts'));
  run('openapi-ts', '-i', document, '-o', join(made, 'client'));
  run('tsc', ...COMPILE, join(made, 'types.ts'), join(made, 'client/index.ts'));
  console.log('Both generators accept the document, and TypeScript accepts what they made.');
} finally {
  rmSync(made, { recursive: true });
}
