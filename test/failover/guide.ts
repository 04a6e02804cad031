/** The files of docs/operate/failover.md, as an operator types them on each machine. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/operate/failover.md'), 'utf8');
export const MACHINES = ['a', 'b', 'c'] as const;
export type MachineName = (typeof MACHINES)[number];

interface Block {
  machines: string[];
  text: string;
}

const BLOCKS: Block[] = [...PAGE.matchAll(/^```sh\n# on ([a-c, and]+)\n([\s\S]*?)^```$/gm)].map(([, names, text]) => ({
  machines: names!.match(/\b[abc]\b/g) ?? [],
  text: text!,
}));

const ADDRESSES: Record<MachineName, string> = { a: '10.7.0.1', b: '10.7.0.2', c: '10.7.0.3' };
export const addressOf = (machine: MachineName): string => ADDRESSES[machine];
export const CUSTOMERS_ADDRESS = '203.0.113.10';

export const SECRETS = {
  ...{ POSTGRES: 'the-superuser', REPLICATION: 'the-replicator', OWNER: 'the-owner', SERVICE: 'the-service' },
  REDIS: 'the-counter',
};

const variablesOf = (machine: MachineName) => ({
  PATH: process.env.PATH!,
  NAME: machine,
  ADDRESS: ADDRESSES[machine],
  PEER: ADDRESSES[machine === 'a' ? 'b' : 'a'],
  ...SECRETS,
});

/** The folders that machines on one disk cannot share. */
const OWN = /(?<![\w/])\/(etc|var\/lib|var\/run)\//g;

/**
 * Runs the blocks of one machine that name a text.
 * @param root the folder that stands for `/`
 * @param within the command that enters the machine
 */
export function type(machine: MachineName, naming: string, root: string, within: string[]): void {
  const blocks = BLOCKS.filter(({ machines, text }) => machines.includes(machine) && text.includes(naming));
  if (!blocks.length) throw new Error(`The guide has no block for ${machine} that names ${naming}.`);
  for (const { text } of blocks) {
    const [command = '', ...args] = [...within, 'bash', '-euc', text.replace(OWN, (folder) => root + folder)];
    const { status, stderr } = spawnSync(command, args, { env: variablesOf(machine), encoding: 'utf8' });
    if (status !== 0) throw new Error(`${naming} on ${machine} failed:\n${stderr}`);
  }
}

/** Reads a file of `NAME=value` lines. */
export const environmentOf = (file: string): Record<string, string> =>
  Object.fromEntries(
    [...readFileSync(file, 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]),
  );
