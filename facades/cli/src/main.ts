#!/usr/bin/env node
/** The program `freehold`. */
import { Command, CommanderError, Option } from 'commander';
import own from '../package.json' with { type: 'json' };
import { FreeholdError } from '../../client/src/index.ts';
import { account, balance, canary, catalog, status, usage } from './commands/account.ts';
import { api } from './commands/api.ts';
import { complete, completion } from './commands/completion.ts';
import { apiKey, message, webhook } from './commands/keys.ts';
import { login, logout, profile, register } from './commands/login.ts';
import { server } from './commands/server.ts';
import { ssh, sshKey } from './commands/ssh.ts';
import { topup } from './commands/top-up.ts';
import { EXIT, exitCodeOf, explain } from './failure.ts';

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

const GROUPS: readonly (readonly [heading: string, commands: readonly Command[]])[] = [
  ['Servers:', [server(), ssh(), sshKey(), catalog()]],
  ['Money:', [topup(), balance(), usage()]],
  ['Account:', [register(), login(), logout(), profile(), account(), apiKey(), webhook(), message()]],
  ['Service:', [status(), canary(), api(), completion()]],
];

const program = new Command('freehold')
  .description('Rents VPS and dedicated servers, paid in cryptocurrency.')
  .version(own.version)
  .addOption(
    new Option('-o, --output <format>', 'how to show results').choices(['table', 'json', 'yaml']).default('table'),
  )
  .option('--profile <name>', 'the profile to use')
  .option('--idempotency-key <key>', 'makes a repeated change act once')
  .addHelpText('after', ENVIRONMENT)
  .configureHelp({ showGlobalOptions: true })
  .enablePositionalOptions(false)
  .showHelpAfterError('(add --help for help)')
  .exitOverride();
for (const [heading, commands] of GROUPS)
  for (const command of commands) program.addCommand(command.helpGroup(heading));
program.addCommand(complete(), { hidden: true });
override(program);

/** Lets each command throw instead of ending the process, so there is one place for exit codes. */
function override(command: Command): void {
  command.exitOverride().configureHelp({ showGlobalOptions: true });
  for (const one of command.commands) override(one);
}

program.parseAsync().catch((error) => {
  process.exitCode = fail(error);
});

function fail(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode ? EXIT.usage : 0;
  const { output } = program.opts<{ output: string }>();
  if (output !== 'table' && error instanceof FreeholdError)
    console.error(JSON.stringify({ detail: error.message, ...error.body }));
  else console.error(explain(error));
  return exitCodeOf(error);
}
