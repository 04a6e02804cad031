/**
 * Values that are rendered once for many answers. The SDK renders a placeholder, and the writer of the response puts the bytes
 * in its place. So a list of 100 KB costs an answer neither time nor memory.
 */
import { randomUUID } from 'node:crypto';

/** The most values of a generation. The older of two goes as a whole, so a value outlives the answer that needs it. */
const VALUES_MAX = 50;

export class Prepared {
  /** Begins each placeholder. It is random, so that no other value of an answer contains it. */
  readonly #mark = `prepared ${randomUUID()} `;
  readonly #quoted = Buffer.from(`"${this.#mark}`);
  #values = new Map<string, Buffer>();
  #older = new Map<string, Buffer>();

  /** Returns the placeholder of a value. @param make makes the value, unless its key is known */
  placeholderOf(key: string, make: () => unknown): string {
    if (!this.#values.has(key)) {
      if (this.#values.size >= VALUES_MAX) {
        this.#older = this.#values;
        this.#values = new Map();
      }
      this.#values.set(key, this.#older.get(key) ?? Buffer.from(JSON.stringify(make())));
    }
    return this.#mark + Buffer.from(key).toString('base64url');
  }

  /** Returns the parts of a rendered chunk, with the bytes in place of each placeholder. */
  readonly fill = (chunk: Uint8Array): Uint8Array[] => {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const start = bytes.indexOf(this.#quoted);
    if (start === -1) return [chunk];
    const end = bytes.indexOf('"', start + 1);
    const key = Buffer.from(bytes.toString('latin1', start + this.#quoted.length, end), 'base64url').toString();
    const value = this.#values.get(key) ?? this.#older.get(key)!;
    return [bytes.subarray(0, start), value, ...this.fill(bytes.subarray(end + 1))];
  };
}
