import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import type { SshKey } from '../../../client/src/index.ts';
import { UsageError } from '../failure.ts';
import { ago, type Columns, print, printRows } from '../output.ts';
import { readInput } from '../questions.ts';
import { findServer, sessionOf } from '../session.ts';

const KEY_FILES = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_rsa.pub'];
const COLUMNS: Columns<SshKey> = {
  id: (one) => one.id,
  name: (one) => one.name,
  type: (one) => one.type,
  age: (one) => ago(one.created_at),
  fingerprint: (one) => one.fingerprint,
};

export const ssh = () =>
  new Command('ssh')
    .description('Log in to a server with the ssh of this machine')
    .argument('<server>', 'its order number or hostname')
    .argument('[command...]', 'a command to run there; options of ssh go before it, after --')
    .option('--user <name>', 'the user', 'root')
    .option('-6, --ipv6', 'connect over IPv6')
    .addHelpText('after', '\nExamples:\n  freehold ssh web\n  freehold ssh web -- uptime')
    .action(
      async (given: string, words: string[], { user, ipv6 }: { user: string; ipv6?: boolean }, command: Command) => {
        const { hostname, ipv4, ipv6: address6 } = await findServer(sessionOf(command), given);
        const address = ipv6 ? address6 : (ipv4 ?? address6);
        if (!address) throw new UsageError(`${hostname} has no address yet. See: freehold server get ${given}`);
        // ssh takes a text that is no address for an option, which can name a program.
        if (!isIP(address)) throw new UsageError(`The service answered with no IP address, but ${address}.`);
        const child = spawn('ssh', ['-l', user, address, ...words], { stdio: 'inherit' });
        process.exitCode = await new Promise<number>((resolve, reject) => {
          child.on('error', () => reject(new UsageError('There is no program ssh on this machine.')));
          child.on('close', (code) => resolve(code ?? 1));
        });
      },
    );

export const sshKey = () =>
  new Command('ssh-key')
    .description('Manage the public keys that new servers get')
    .addCommand(
      new Command('add')
        .description('Add a public key')
        .argument('[file]', 'default: the key in ~/.ssh; - reads the standard input')
        .option('--name <name>', 'a name for the key')
        .addHelpText('after', '\nExample:\n  freehold ssh-key add ~/.ssh/id_ed25519.pub --name laptop')
        .action(async (file: string | undefined, { name }: { name?: string }, command: Command) => {
          const { freehold, format, call } = sessionOf(command);
          const text = file === '-' ? await readInput() : readFileSync(file ?? ownKey(), 'utf8');
          const public_key = text.trim();
          const key = await freehold.sshKeys.add({ public_key, ...(name && { name }) }, call);
          printRows([key], COLUMNS, format);
        }),
    )
    .addCommand(
      new Command('list')
        .alias('ls')
        .description('List the keys')
        .action(async (_options, command: Command) => {
          const { freehold, format } = sessionOf(command);
          printRows(await freehold.sshKeys.list().all(), COLUMNS, format);
        }),
    )
    .addCommand(
      new Command('delete')
        .alias('rm')
        .description('Delete a key. Servers that have it keep it')
        .argument('<id>')
        .action(async (id: string, _options, command: Command) => {
          const { freehold, format, call } = sessionOf(command);
          print(await freehold.sshKeys.delete(id, call), format);
        }),
    );

function ownKey(): string {
  const found = KEY_FILES.map((name) => join(homedir(), '.ssh', name)).find(existsSync);
  if (!found) throw new UsageError('There is no public key in ~/.ssh. Make one with ssh-keygen, or name a file.');
  return found;
}
