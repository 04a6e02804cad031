/** Runs commands of npm packages as child processes, so that this process can serve them meanwhile. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { MACHINE, newFolder, removeFolder } from '../../../setup/spawn.ts';

const BIN = join(import.meta.dirname, '..', '..', '..', '..', 'node_modules', '.bin');

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a command of node_modules with the Node of this process, in a new home and a new folder. */
export async function run(command: string, args: string[]): Promise<Ran> {
  const home = newFolder();
  const child = spawn(process.execPath, [join(BIN, command), ...args], {
    cwd: home,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...MACHINE, NODE_OPTIONS: '', PATH: `${BIN}:${process.env.PATH}`, HOME: home, NO_COLOR: '1' },
  });
  const ran = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk) => (ran.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk) => (ran.stderr += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  removeFolder(home);
  return { code, ...ran };
}
