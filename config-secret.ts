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
  const { mode } = statSync(file);
  if (mode & 0o002) throw refused(`other users can write ${file}. Run: chmod 600 ${file}`);
  // A readable file may be safe: in a container of Docker, or in a folder that keeps others out.
  if (mode & 0o004)
    console.warn(`Every user who can enter the folder of ${file} can read this secret. If some should not: chmod 600`);
  if (!text) throw refused(`${file} is empty`);
  return text;
}
