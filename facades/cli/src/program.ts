/** All commands of `freehold`. */
import { Command, CommanderError, Option } from 'commander';
import { FreeholdError } from '../../client/src/index.ts';
import own from '../package.json' with { type: 'json' };
import { account, balance, canary, catalog, status, usage } from './commands/account.ts';
import { api } from './commands/api.ts';
import { complete, completion } from './commands/completion.ts';
import { apiKey, message, webhook } from './commands/keys.ts';
import { login, logout, profile, register } from './commands/login.ts';
import { server } from './commands/server.ts';
import { ssh, sshKey } from './commands/ssh.ts';
import { topup } from './commands/top-up.ts';
import { EXIT, exitCodeOf, explain } from './failure.ts';
import { say } from './terminal.ts';

const ENVIRONMENT = `
Environment:
  FREEHOLD_URL      the address of the service
  FREEHOLD_TOKEN    an API key; with both, no profile is needed
  FREEHOLD_PROFILE  the profile to use

Start with:
  freehold register you@example.org --url https://freehold.example.org
  freehold topup create 50 --coin BTC
  freehold server create --type vps-1 --name web
  freehold ssh web`;

const groups = (): [heading: string, commands: Command[]][] => [
  ['Servers:', [server(), ssh(), sshKey(), catalog()]],
  ['Money:', [topup(), balance(), usage()]],
  ['Account:', [register(), login(), logout(), profile(), account(), apiKey(), webhook(), message()]],
  ['Service:', [status(), canary(), api(), completion()]],
];

const help = () =>
  new Command('help').argument('[command]').description('Show the help of a command').helpGroup('Service:');

/** Makes the program. A run keeps its options in it, so each run has its own. */
export function newProgram(): Command {
  const program = new Command('freehold')
    .description('Rents VPS and dedicated servers, paid in cryptocurrency.')
    .version(own.version, '-V, --version', 'show the version')
    .addHelpCommand(help())
    .addOption(
      new Option('-o, --output <format>', 'how to show results').choices(['table', 'json', 'yaml']).default('table'),
    )
    .option('--profile <name>', 'the profile to use')
    .option('--idempotency-key <key>', 'makes a repeated change act once')
    .addHelpText('after', ENVIRONMENT)
    .enablePositionalOptions(false)
    .showHelpAfterError('(add --help for help)');
  for (const [heading, commands] of groups())
    for (const command of commands) program.addCommand(command.helpGroup(heading));
  program.addCommand(complete(), { hidden: true });
  override(program);
  return program;
}

/** Lets each command throw instead of ending the process, so there is one place for exit codes. */
function override(command: Command): void {
  command.exitOverride().configureHelp({ showGlobalOptions: true }).helpOption('-h, --help', 'show this help');
  for (const one of command.commands) override(one);
}

/** Runs a command. @returns its exit code, or undefined if it has set that of the process */
export async function run(words: readonly string[]): Promise<number | undefined> {
  const program = newProgram();
  try {
    await program.parseAsync(words, { from: 'user' });
    return undefined;
  } catch (error) {
    return fail(error, program.opts<{ output: string }>().output);
  }
}

function fail(error: unknown, output: string): number {
  if (error instanceof CommanderError) return error.exitCode ? EXIT.usage : 0;
  if (output !== 'table' && error instanceof FreeholdError)
    say(JSON.stringify({ detail: error.message, ...error.body }));
  else say(explain(error));
  return exitCodeOf(error);
}
