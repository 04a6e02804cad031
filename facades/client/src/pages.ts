import type { Page } from './api.ts';

/** A list. Iterate over its entries, or take one page after the other. Reads each page when it is needed. */
export class List<T> implements AsyncIterable<T> {
  readonly #read: (cursor: string | undefined) => Promise<Page<T>>;

  constructor(read: (cursor: string | undefined) => Promise<Page<T>>) {
    this.#read = read;
  }

  /** Returns a page. @param cursor the `next_cursor` of the page before */
  page(cursor?: string): Promise<Page<T>> {
    return this.#read(cursor);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    let cursor: string | undefined;
    do {
      const page = await this.#read(cursor);
      yield* page.data;
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
  }

  /** Returns all entries, or the first ones. */
  async all(most = Number.POSITIVE_INFINITY): Promise<T[]> {
    const entries: T[] = [];
    for await (const entry of this) if (entries.push(entry) >= most) break;
    return entries;
  }
}
