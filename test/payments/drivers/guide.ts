/** Runs the printed commands of a page of docs/operate/payments as an operator types them, in a folder of their own. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MACHINE, newFolder, type OnEnd, removeFolder } from '../../setup/spawn.ts';

const APP = join(import.meta.dirname, '..', '..', '..');
/** The words from which the keys of the tests are made. */
export const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow';

export interface Guide {
  /** Runs the one block that contains these words, with other values. @returns its output */
  type(words: string, changes?: Record<string, string>): string;
  read(file: string): string;
}

/** @param programs scripts by the name of the program that they replace */
export function openGuide(page: string, onEnd: OnEnd, programs: Record<string, string> = {}): Guide {
  const text = readFileSync(join(APP, 'docs/operate/payments', page), 'utf8');
  const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!);
  const folder = newFolder();
  onEnd(() => removeFolder(folder));
  symlinkSync(join(APP, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'words'), `${WORDS}\n`);
  mkdirSync(join(folder, 'bin'));
  for (const [name, script] of Object.entries(programs))
    writeFileSync(join(folder, 'bin', name), script, { mode: 0o700 });
  const env = { ...MACHINE, PATH: `${join(folder, 'bin')}:${MACHINE.PATH}` };
  return {
    type(words, changes = {}) {
      const found = blocks.filter((block) => block.includes(words));
      if (found.length !== 1) throw new Error(`${found.length} blocks of ${page} have ${words}.`);
      const typed = Object.entries(changes).reduce((block, [printed, value]) => {
        if (!block.includes(printed)) throw new Error(`The block has no ${printed}.`);
        return block.replaceAll(printed, value);
      }, found[0]!);
      return execFileSync('bash', ['-e', '-o', 'pipefail', '-c', typed], {
        ...{ cwd: folder, env, encoding: 'utf8' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    },
    read: (file) => readFileSync(join(folder, file), 'utf8'),
  };
}
