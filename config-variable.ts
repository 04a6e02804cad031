/** The description of an environment variable, for reading it and for its documentation. */
import { readFileSync, statSync } from 'node:fs';
import type { Kind } from './config-kind.ts';

/** An environment variable with the type of its value. */
export interface Variable<T> {
  kind: Kind<T>;
  /** The text that an unset variable stands for. */
  preset?: string;
  /** The default as the documentation prints it. */
  printed: string;
  description: string;
  /** Whether it can also come from a file, which the variable with the ending `_FILE` names. */
  secret?: boolean;
}
/** Makes a variable with a default. */
export const variable = <T>(kind: Kind<T>, preset: string, description: string): Variable<T> => ({
  kind,
  preset,
  printed: preset ? `\`${preset}\`` : 'none',
  description,
});
/** Makes a variable that is undefined when unset. */
export const optional = <T>(kind: Kind<T>, printed: string, description: string): Variable<T | undefined> => ({
  kind,
  printed,
  description,
});

/** Lets a variable come from a file, too. */
export const secret = <T>(variable: Variable<T>): Variable<T> => ({ ...variable, secret: true });

const INTRODUCTION = `Freehold reads environment variables, and every one is optional. An empty variable counts as unset. A wrong value
stops the start, and the error says what was expected. \`test/config.test.ts\` prints this page from \`config.ts\`.

A secret can also lie in a file, which the second name of its variable gives: \`SECRET_KEY_FILE=/run/secrets/key\`. The
service refuses a file that every user can write, and warns of one that every user can read. Set one of the two
variables.`;

/** Prints the variables of each group as tables. */
export function configurationPage(groups: Readonly<Record<string, object>>): string {
  const row = ([name, { kind, printed, description, secret }]: [string, Variable<unknown>]) =>
    `| \`${name}\`${secret ? ` or \`${name}_FILE\`` : ''} | ${kind.expected}${kind.unit ? ` (${kind.unit})` : ''} | ${printed} | ${description} |`;
  const section = ([heading, group]: [string, object]) => [
    `## ${heading}`,
    '',
    '| variable | accepts | default | description |',
    '|---|---|---|---|',
    ...Object.entries<Variable<unknown>>({ ...group }).map(row),
    '',
  ];
  return ['# Configuration', '', INTRODUCTION, '', ...Object.entries(groups).flatMap(section)].join('\n');
}

/** Returns the secret of a file, which the variable with the ending `_FILE` names. @throws Error that names the reason */
function secretIn(environment: Environment, name: string): string | undefined {
  const file = environment[`${name}_FILE`]?.trim();
  if (!file) return undefined;
  const refused = (reason: string) => new Error(`${name}_FILE is wrong: ${reason}.`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw refused(`the service cannot read ${file} (${(error as NodeJS.ErrnoException).code})`);
  }
  const { mode } = statSync(file);
  if (mode & 0o002) throw refused(`other users can write ${file}. Run: chmod 600 ${file}`);
  // A readable file may be safe: in a container of Docker, or in a folder that keeps others out.
  if (mode & 0o004)
    process.emitWarning(
      `Every user who can enter the folder of ${file} can read this secret. If some should not: chmod 600`,
    );
  if (!text) throw refused(`${file} is empty`);
  return text;
}

/** The environment of a process. */
export type Environment = Record<string, string | undefined>;
/** `DATA_DIR` becomes `dataDir`. */
type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<Camel<Rest>>}`
  : Lowercase<Name>;
type Value<V> = V extends Variable<infer T> ? T : never;
/** The values of a group by camel-cased names, which lack the prefix. */
export type Values<Group, Prefix extends string> = {
  [Name in keyof Group as Name extends `${Prefix}${infer Rest}` ? Camel<Rest> : never]: Value<Group[Name]>;
};

const wrong = (name: string, expected: string) => new Error(`${name} is wrong: expected ${expected}.`);

/** Reads a group of variables. @throws Error that names the wrong variable and the expected text */
export function valuesOf<Group, Prefix extends string>(group: object, environment: Environment, { length }: Prefix) {
  const values = Object.entries<Variable<unknown>>({ ...group }).map(([name, { kind, preset, secret }]) => {
    const set = environment[name]?.trim();
    const kept = secret ? secretIn(environment, name) : undefined;
    if (set && kept) throw new Error(`${name} and ${name}_FILE are both set. Unset one of them.`);
    const given = set || kept || preset;
    const value = given === undefined ? undefined : kind.parse(given);
    if (given !== undefined && value === undefined) throw wrong(kept ? `${name}_FILE` : name, kind.expected);
    const words = name.slice(length).toLowerCase();
    return [words.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()), value];
  });
  return Object.fromEntries(values) as Values<Group, Prefix>;
}
