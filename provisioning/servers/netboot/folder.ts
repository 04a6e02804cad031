/** The folder of files that machines boot from. Its SHA256SUMS (as `sha256sum` writes it) vouches for each of them. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const SUMS = 'SHA256SUMS';
const LINE = /^([0-9a-f]{64}) [ *](?:\.\/)?(\S+)$/gm;
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;
const ENDINGS = ['.img', '.img.gz', '.img.xz'];

export class BootFolder {
  readonly path: string;
  /** The sums of files that were checked, by name, size and time. */
  readonly #checked = new Map<string, Promise<string>>();
  constructor(path: string) {
    this.path = path;
  }

  /** The image of a system. The installer compares its sum. @throws Error that says what is missing */
  async image(code: string): Promise<{ name: string; sha256: string }> {
    const sums = await this.#sums();
    for (const name of ENDINGS.map((ending) => `${code}${ending}`)) {
      const sha256 = sums.get(name);
      if (sha256 && (await stat(join(this.path, name)).catch(() => undefined))) return { name, sha256 };
    }
    throw new Error(`The image of ${code} is missing: ${join(this.path, code)}.img, with its line in ${SUMS}.`);
  }

  /** A file for which the sums have a line. Undefined: there is none. */
  async file(name: string) {
    if (!NAME.test(name) || !(await this.#sums()).has(name)) return undefined;
    const path = join(this.path, name);
    const found = await stat(path).catch(() => undefined);
    if (!found?.isFile()) return undefined;
    return {
      size: found.size,
      read: (first: number, end: number) => createReadStream(path, { start: first, end: end - 1 }),
    };
  }

  /** Compares files with their sums, when they have changed. @throws Error that names a file that is missing or different */
  async verify(...names: string[]): Promise<void> {
    const sums = await this.#sums();
    for (const name of names) {
      const sum = await this.#sumOf(name);
      if (sum !== sums.get(name))
        throw new Error(`${join(this.path, name)} differs from its line in ${SUMS}, or has none.`);
    }
  }

  async #sums(): Promise<Map<string, string>> {
    const text = await readFile(join(this.path, SUMS), 'utf8').catch(() => '');
    return new Map([...text.matchAll(LINE)].map(([, sum, name]) => [name!, sum!]));
  }

  async #sumOf(name: string): Promise<string> {
    const path = join(this.path, name);
    const { size, mtimeMs } = await stat(path);
    const key = `${name}:${size}:${mtimeMs}`;
    const sum = this.#checked.get(key) ?? sumOf(path);
    this.#checked.set(key, sum);
    sum.catch(() => this.#checked.delete(key));
    return sum;
  }
}

async function sumOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
