/** Secrets that lie in files. */
import { readFileSync, statSync } from 'node:fs';

/** Returns the secret of a file, which the variable with the ending `_FILE` names. @throws Error that names the reason */
export function secretIn(environment: Record<string, string | undefined>, name: string): string | undefined {
  const file = environment[`${name}_FILE`]?.trim();
  if (!file) return undefined;
  const refused = (reason: string) => new Error(`${name}_FILE is wrong: ${reason}.`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw refused(`the service cannot read ${file} (${(error as NodeJS.ErrnoException).code})`);
  }
  if (statSync(file).mode & 0o007) throw refused(`every user of the machine can reach ${file}. Run: chmod 600 ${file}`);
  if (!text) throw refused(`${file} is empty`);
  return text;
}
