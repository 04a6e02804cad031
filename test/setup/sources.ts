/** The sources of the product, for tests that read them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'vite';

const ROOT = join(import.meta.dirname, '..', '..');

/** Returns the TypeScript files below a folder of the project, without migrations. */
export const sourcesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.includes('migrations'))
    .map((file) => join(folder, file));

/** Imports all entities. @returns all that they export, by name */
export async function importEntities(): Promise<Map<string, unknown>> {
  const modules = await Promise.all(sourcesIn('entities').map((file) => import(join(ROOT, file))));
  return new Map(modules.flatMap((exported) => Object.entries(exported as object)));
}

/** Returns the strings and the templates of a file. An ellipsis replaces each expression of a template. */
export function stringsOf(file: string): string[] {
  const found: string[] = [];
  const visit = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return;
    const { type, value, quasis } = node as {
      type?: string;
      value?: unknown;
      quasis?: { value: { cooked: string } }[];
    };
    if (type === 'Literal' && typeof value === 'string') found.push(value);
    if (type === 'TemplateLiteral') found.push(quasis!.map((quasi) => quasi.value.cooked).join('…'));
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseSync(file, readFileSync(join(ROOT, file), 'utf8'), { lang: 'ts' }).program);
  return found;
}
