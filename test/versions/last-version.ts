/** The files of the last version. `make.ts` writes the archive and the facts. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type OnEnd, removeFolder } from '../setup/spawn.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** An archive of the database of the last version. */
export const ARCHIVE = join(import.meta.dirname, 'last.age');
/** The facts that the tests compare. */
export const FACTS = join(import.meta.dirname, 'last.json');

/** The last version, beside its archive. */
export interface LastVersion {
  version: string;
  commit: string;
  /** When the archive was made, in UTC. */
  day: string;
  /** SECRET_KEY. */
  secretKey: string;
  /** The simulated machines, by the names of their files. */
  machines: Record<string, string>;
  customer: { email: string; password: string; apiKey: string };
  /** An account with a second factor. */
  careful: { email: string; password: string; secret: string };
  /** The bodies of all answers, by their paths. */
  answers: Record<string, unknown>;
}

export const readLastVersion = (): LastVersion => JSON.parse(readFileSync(FACTS, 'utf8'));

const git = (...args: string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });

/** Returns the whole id of a commit, or undefined if this clone lacks it. */
export function commitOf(name: string): string | undefined {
  const { status, stdout } = git('rev-parse', '--verify', '--quiet', `${name}^{commit}`);
  return status === 0 ? stdout.trim() : undefined;
}

/** Returns the program that `npm start` of a version runs. */
export function programOf(folder: string): string {
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, /node (\S+)$/.exec(scripts.start)![1]!);
}

/** Lays out the files of a commit, with the packages of this version. @returns the folder */
export function checkOut(commit: string, onEnd: OnEnd): string {
  const folder = mkdtempSync(join(tmpdir(), 'freehold-version-'));
  onEnd(() => removeFolder(folder));
  execFileSync('sh', ['-ec', 'git archive "$0" | tar -x -C "$1"', commit, folder], { cwd: ROOT });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}
