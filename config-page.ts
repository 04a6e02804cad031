/** The page docs/operate/configuration.md. */
import type { Variable } from './config-variable.ts';

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
