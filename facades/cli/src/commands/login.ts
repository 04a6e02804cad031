import { hostname } from 'node:os';
import { Command } from 'commander';
import { Freehold, FreeholdError } from '../../../client/src/index.ts';
import { UsageError } from '../failure.ts';
import { fileOf, profileName, readProfiles, requireUnused, writeProfiles } from '../profile.ts';
import { ask, readInput } from '../questions.ts';
import type { Globals } from '../session.ts';
import { say, write } from '../terminal.ts';

interface LoginOptions extends Globals {
  url?: string;
  passwordStdin?: boolean;
  scope: 'read' | 'servers' | 'billing' | 'full';
}

const SCOPES = 'read, servers, billing or full';
const withOptions = (command: Command) =>
  command
    .argument('<email>')
    .option('--url <url>', 'the address of the service')
    .option('--password-stdin', 'read the password from the standard input')
    .option('--scope <scope>', `the scope of the new API key: ${SCOPES}`, 'full');

export const register = () =>
  withOptions(new Command('register').description('Open an account, and keep an API key in the profile'))
    .addHelpText('after', '\nExample:\n  freehold register ada@example.org --url https://freehold.example.org')
    .action(async (email: string, _options, command: Command) => {
      const options = command.optsWithGlobals<LoginOptions>();
      const url = serviceOf(options);
      const password = await newPasswordOf(options);
      const { tokens } = await new Freehold({ url }).account.register({ email, password });
      await keep(options, url, tokens.access_token);
      say('Keep the password: without it and without a key, the account is lost.');
    });

export const login = () =>
  withOptions(new Command('login').description('Make an API key with a login, and keep it in the profile'))
    .addHelpText('after', '\nExample:\n  freehold login ada@example.org --url https://freehold.example.org')
    .action(async (email: string, _options, command: Command) => {
      const options = command.optsWithGlobals<LoginOptions>();
      const url = serviceOf(options);
      const freehold = new Freehold({ url });
      const first = await freehold.account.login({ email, password: await passwordOf(options) });
      let { tokens } = first;
      if (first.totp_required && first.login_token) {
        const totp_code = await ask('Code of the second factor: ', 'FREEHOLD_TOKEN with an API key');
        ({ tokens } = await freehold.account.loginTotp({ login_token: first.login_token, totp_code }));
      }
      await keep(options, url, tokens!.access_token);
    });

export const logout = () =>
  new Command('logout')
    .description('Revoke the API key of the profile, and forget it')
    .action(async (_options, command: Command) => {
      const { profile } = command.optsWithGlobals<Globals>();
      const name = profileName(process.env, profile);
      const all = readProfiles(process.env);
      const kept = all.profiles[name];
      if (!kept) throw new UsageError(`There is no profile ${name}.`);
      // The environment may name another service or another key.
      const freehold = new Freehold({ url: kept.url, apiKey: kept.token });
      if (kept.key_id) await freehold.apiKeys.revoke(kept.key_id).catch(ignoreEnded);
      delete all.profiles[name];
      writeProfiles(process.env, all);
      say(`The profile ${name} is gone, and its key works no more.`);
    });

export const profile = () =>
  new Command('profile')
    .description('Show the profiles, or choose one')
    .argument('[name]', 'the profile to use from now on')
    .action((name: string | undefined) => {
      const all = readProfiles(process.env);
      if (name && !all.profiles[name])
        throw new UsageError(`There is no profile ${name}. Make it: freehold login --profile ${name}`);
      if (name) writeProfiles(process.env, { ...all, current: name });
      const current = name ?? all.current;
      for (const [one, { url }] of Object.entries(all.profiles)) write(`${one === current ? '*' : ' '} ${one}  ${url}`);
      if (!Object.keys(all.profiles).length) say('There are no profiles. Make one: freehold login');
    });

/** A key that has expired or was revoked cannot revoke itself. */
function ignoreEnded(error: unknown): void {
  if (!(error instanceof FreeholdError && error.status === 401)) throw error;
}

/** The address for a new profile. @throws UsageError if the profile is in use, or no service is known */
function serviceOf({ url, profile }: LoginOptions): string {
  requireUnused(process.env, profile);
  const known = url ?? process.env.FREEHOLD_URL;
  if (!known) throw new UsageError('--url is missing: the address of the service.');
  return known;
}

/** A person types the password twice, because a mistyped one is lost. */
async function newPasswordOf(options: LoginOptions): Promise<string> {
  const password = await passwordOf(options);
  if (!options.passwordStdin && password !== (await ask('The same again: ', '--password-stdin', { isSecret: true })))
    throw new UsageError('The passwords differ.');
  return password;
}

async function passwordOf({ passwordStdin }: LoginOptions): Promise<string> {
  return passwordStdin ? readInput() : ask('Password: ', '--password-stdin', { isSecret: true });
}

async function keep({ profile, scope }: LoginOptions, url: string, token: string): Promise<void> {
  const key = await new Freehold({ url, apiKey: token }).apiKeys.create({
    name: `freehold on ${hostname()}`.slice(0, 64),
    scope,
  });
  const name = profile ?? readProfiles(process.env).current;
  const all = readProfiles(process.env);
  all.profiles[name] = { url, token: key.plaintext, key_id: key.key_id };
  writeProfiles(process.env, { ...all, current: name });
  say(`Logged in to ${url}. The key is in ${fileOf(process.env)}.`);
}
