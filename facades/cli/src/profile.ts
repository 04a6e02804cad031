/**
 * Profiles: an address and a key for each, in one file that only its user can read. FREEHOLD_URL and FREEHOLD_TOKEN go before a
 * profile, and suffice without a file. The key of a profile never goes to another service.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse, stringify } from 'smol-toml';
import { UsageError } from './failure.ts';

export interface Profile {
  url: string;
  /** An API key. */
  token: string;
  /** The id of the key, to revoke it at logout. */
  key_id?: string;
}
export interface Profiles {
  current: string;
  profiles: Record<string, Profile>;
}
type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT = 'default';

export const fileOf = (env: Environment): string =>
  env.FREEHOLD_CONFIG || join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'freehold', 'config.toml');

export function readProfiles(env: Environment): Profiles {
  let text: string;
  try {
    text = readFileSync(fileOf(env), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return { current: DEFAULT, profiles: {} };
  }
  const { current = DEFAULT, profiles = {} } = parse(text) as unknown as Partial<Profiles>;
  return { current, profiles };
}

/** Writes a new file and renames it, so an interruption loses no profile. */
export function writeProfiles(env: Environment, profiles: Profiles): void {
  const file = fileOf(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, stringify(profiles), { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
}

/** The address and the key of a command. @throws UsageError if the named profile does not exist, or no service is known */
export function connectionOf(env: Environment, named: string | undefined): { url: string; token: string | undefined } {
  const { current, profiles } = readProfiles(env);
  const name = named ?? env.FREEHOLD_PROFILE;
  const profile = profiles[name ?? current];
  if (name && !profile)
    throw new UsageError(`There is no profile ${name}. There are: ${Object.keys(profiles).join(', ') || 'none'}.`);
  const url = env.FREEHOLD_URL || profile?.url;
  if (!url) throw new UsageError('No service is known. Log in: freehold login you@example.org --url https://…');
  // The key of a profile is for its service alone.
  const isOfProfile = profile && URL.canParse(url) && new URL(url).origin === new URL(profile.url).origin;
  return { url, token: env.FREEHOLD_TOKEN || (isOfProfile ? profile.token : undefined) };
}

/** @throws UsageError if the profile is in use. Its key would be lost */
export function requireUnused(env: Environment, named: string | undefined): void {
  const name = profileName(env, named);
  const known = readProfiles(env).profiles[name];
  if (known)
    throw new UsageError(
      `The profile ${name} has a key for ${known.url}. Log out first, or keep another one: --profile <name>`,
    );
}

export const profileName = (env: Environment, named: string | undefined): string =>
  named ?? env.FREEHOLD_PROFILE ?? readProfiles(env).current;
