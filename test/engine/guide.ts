/** Runs the operator's commands of docs/operate/lxd.md as printed, so that the tests cover the guide. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningService } from '../setup/spawn.ts';

const GUIDE = join(import.meta.dirname, '../../docs/operate/lxd.md');

/** Returns the shell block of the guide that contains these words. */
const blockOf = (about: 'addAddressPool' | 'for host in') => {
  const blocks = [...readFileSync(GUIDE, 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!);
  const [definition, block] = ['operator() {', about].map((text) => blocks.find((one) => one.includes(text)));
  if (!definition || !block) throw new Error(`The guide has no command for: ${about}`);
  // Only the address and the token of the service differ from the print.
  return `${definition.replace(/^GRAPHQL=.*\n/m, '')}${block}`;
};

/**
 * @param network the network of the engine, such as 10.79.0.0, instead of the one in the guide
 * @throws Error if the service refuses a command
 */
export function runGuide(
  { graphql, operatorToken }: RunningService,
  about: Parameters<typeof blockOf>[0],
  network = '10.79.0.0',
): void {
  const script = blockOf(about).replaceAll('10.79.0.', network.replace(/0$/, ''));
  const env = { PATH: process.env.PATH, GRAPHQL: graphql, TOKEN: operatorToken };
  const answers = execFileSync('bash', ['-euc', script], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (!answers.includes('"data"') || answers.includes('"errors"')) throw new Error(`${script}\n${answers}`);
}
