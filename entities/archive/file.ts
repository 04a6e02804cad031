/** The files of archives in a folder. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** The ending of a file that is not complete. */
export const PARTIAL = '.partial';
/** Such as `freehold-2026-11-29T210000Z.age`. */
const NAME = /^freehold-(\d{4}-\d{2}-\d{2})T(\d{2})(\d{2})(\d{2})Z\.age(\.partial)?$/;

/** Returns the name of an archive that begins now. Names sort by time. */
export const archiveName = (at = new Date()): string =>
  `freehold-${at.toISOString().slice(0, 19).replaceAll(':', '')}Z.age`;

/**
 * Deletes archives that are older, except the last one. Also deletes what killed processes left more than a day ago. Leaves all
 * other files.
 */
export async function deleteOld(folder: string, keepDays: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => NAME.test(name)).sort();
  const last = names.findLast((name) => !name.endsWith(PARTIAL));
  const before = (days: number) => archiveName(new Date(Date.now() - days * 86_400_000));
  const isOld = (name: string) => name < before(name.endsWith(PARTIAL) ? 1 : keepDays) && name !== last;
  for (const name of names.filter(isOld)) await rm(join(folder, name), { force: true });
}
