/** Runs the operator's commands of docs/operate/lxd.md as printed, so that the tests cover the guide. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningService } from '../setup/spawn.ts';
import { FOLDER } from './lxd.ts';

const GUIDE = join(import.meta.dirname, '../../docs/operate/lxd.md');

/** Returns the shell block of the guide that contains these words. */
function blockOf(about: string): string {
  const blocks = [...readFileSync(GUIDE, 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!);
  const found = blocks.find((one) => one.includes(about));
  if (!found) throw new Error(`The guide has no command for: ${about}`);
  return found;
}

/**
 * @param network the network of the engine, such as 10.79.0.0, instead of the one in the guide
 * @throws Error if the service refuses a command
 */
export function runGuide(
  { graphql, operatorToken }: RunningService,
  about: 'addAddressPool' | 'for host in',
  network = '10.79.0.0',
): void {
  // Only the address and the token of the service differ from the print.
  const definition = blockOf('operator() {').replace(/^GRAPHQL=.*\n/m, '');
  const script = `${definition}${blockOf(about)}`.replaceAll('10.79.0.', network.replace(/0$/, ''));
  const env = { PATH: process.env.PATH, GRAPHQL: graphql, TOKEN: operatorToken };
  const answers = execFileSync('bash', ['-euc', script], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (!answers.includes('"data"') || answers.includes('"errors"')) throw new Error(`${script}\n${answers}`);
}

/**
 * Runs a block about the engine, in the folder of the tests.
 * @param folder of the engine
 * @param instead texts that replace others, such as the networks of the guide
 * @returns the variables that it exports for the service
 * @throws Error if a command fails
 */
export function followGuide(
  about: string,
  folder: string,
  instead: Record<string, string> = {},
): Record<string, string> {
  const replaced = { '/var/lib/lxd': folder, 'host.example.org': '127.0.0.1', ...instead };
  const block = Object.entries(replaced).reduce((text, [from, to]) => text.replaceAll(from, to), blockOf(about));
  const env = { PATH: process.env.PATH, HOME: FOLDER, LXD_DIR: folder };
  const output = execFileSync('bash', ['-euc', `${block}\nenv`], {
    cwd: FOLDER,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return Object.fromEntries([...output.matchAll(/^(LXC_\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
}
