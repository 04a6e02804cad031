/** Reads an archive from its beginning to its end, and proves on the way that nothing is missing or changed. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import {
  type ArchiveEnd,
  CHUNK_BYTES,
  FORMAT,
  type Header,
  ROWS_END,
  type TableEnd,
  type TableHead,
} from './format.ts';
import { opened, WrongKey } from './seal.ts';

const NEWLINE = 10;
/** The first line of each file of age. */
const AGE = 'age-encryption.org/v1\n';
/** No line of an archive is longer than this. */
const LINE_MAX = 2 ** 20;

/** A table of an archive, while it is read. */
export interface ReadTable extends TableHead {
  /** The rows, in pieces of any length. */
  rows: AsyncIterable<Buffer>;
  /** Reads the rest of the rows. @returns their number @throws Error if they are not those that were written */
  end(): Promise<number>;
}

/**
 * Opens an archive.
 * @param keys one of them has sealed it: see `archiveKeys`
 * @returns its header, and its tables one after the other. The caller ends each one before the next
 * @throws Error with a sentence for the operator
 */
export async function readArchive(
  file: string,
  keys: readonly Uint8Array[],
): Promise<{ header: Header; tables: AsyncGenerator<ReadTable> }> {
  await refuseOthers(file);
  const text = new Text(plainOf(file, keys), file);
  const header = await text.json<Header>();
  if (header.format !== FORMAT)
    throw new Error(`The archive ${file} has the format "${header.format}". A newer version of Freehold reads it.`);
  return { header, tables: tablesOf(text) };
}

/** Proves a whole archive. @throws Error with a sentence for the operator */
export async function checkArchive(
  file: string,
  keys: readonly Uint8Array[],
): Promise<{ header: Header; tables: number; rows: number }> {
  const { header, tables } = await readArchive(file, keys);
  const checked = { header, tables: 0, rows: 0 };
  for await (const table of tables) {
    checked.rows += await table.end();
    checked.tables++;
  }
  return checked;
}

async function* tablesOf(text: Text): AsyncGenerator<ReadTable> {
  for (let count = 0; ; count++) {
    const head = await text.json<TableHead | ArchiveEnd>();
    if ('tables' in head) {
      if (head.tables !== count) throw text.damaged();
      return await text.end();
    }
    const digest = createHash('sha256');
    const rows = text.rows(digest);
    const end = async () => {
      for await (const _ of rows);
      const written = await text.json<TableEnd>();
      if (written.sha256 !== digest.digest('hex')) throw text.damaged();
      return written.rows;
    };
    yield { ...head, rows: { [Symbol.asyncIterator]: () => rows }, end };
  }
}

/** @throws Error if the file is no file of age */
async function refuseOthers(file: string): Promise<void> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    throw new Error(error.code === 'ENOENT' ? `There is no file ${file}.` : error.message);
  });
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(AGE.length), 0, AGE.length, 0);
    if (buffer.toString('latin1', 0, bytesRead) !== AGE) throw new Error(`The file ${file} is no archive of Freehold.`);
  } finally {
    await handle.close();
  }
}

/** Decrypts and decompresses. @throws Error with a sentence for the operator */
async function* plainOf(file: string, keys: readonly Uint8Array[]): AsyncGenerator<Buffer> {
  const source = createReadStream(file, { highWaterMark: CHUNK_BYTES });
  try {
    // It destroys its last stream by any error. The loop throws that error, so the callback need not.
    yield* pipeline(
      Readable.from(opened(keys, source)),
      createZstdDecompress({ chunkSize: CHUNK_BYTES }),
      () => {},
    ) as AsyncIterable<Buffer>;
  } catch (error) {
    if (error instanceof WrongKey)
      throw new Error(
        `SECRET_KEY does not open the archive ${file}. Set SECRET_KEY, or SECRET_KEY_PREVIOUS, to the key of the service when it wrote the archive.`,
      );
    throw damagedBy(file, error);
  } finally {
    source.destroy();
  }
}

const damagedBy = (file: string, cause?: unknown) =>
  new Error(`The archive ${file} is damaged: it was cut off or changed. Use another copy of it, or another archive.`, {
    cause,
  });

/** The text of an archive, read forwards. */
class Text {
  readonly #chunks: AsyncGenerator<Buffer>;
  readonly #file: string;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncGenerator<Buffer>, file: string) {
    this.#chunks = chunks;
    this.#file = file;
  }

  damaged(): Error {
    return damagedBy(this.#file);
  }

  /** Reads a line. */
  async json<T>(): Promise<T> {
    for (;;) {
      const end = this.#rest.indexOf(NEWLINE);
      if (end >= 0) return JSON.parse(this.#take(end + 1).toString());
      if (this.#rest.length > LINE_MAX) throw this.damaged();
      await this.#need();
    }
  }

  /** Reads rows until the line after the last one. */
  async *rows(digest: Hash): AsyncGenerator<Buffer> {
    while (this.#rest.length < ROWS_END.length) await this.#need();
    const isEmpty = this.#rest.subarray(0, ROWS_END.length).equals(Buffer.from(ROWS_END));
    for (let isLast = isEmpty; !isLast; ) {
      const end = this.#rest.indexOf(`\n${ROWS_END}`);
      isLast = end >= 0;
      // The last bytes may be the beginning of that line.
      const piece = this.#take(isLast ? end + 1 : Math.max(0, this.#rest.length - ROWS_END.length));
      digest.update(piece);
      if (piece.length) yield piece;
      if (!isLast) await this.#need();
    }
    this.#take(ROWS_END.length);
  }

  /** @throws Error if the archive goes on */
  async end(): Promise<void> {
    if (this.#rest.length || (await this.#more())) throw this.damaged();
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }

  async #need(): Promise<void> {
    if (!(await this.#more())) throw this.damaged();
  }

  async #more(): Promise<boolean> {
    const { value } = await this.#chunks.next();
    if (value) this.#rest = this.#rest.length ? Buffer.concat([this.#rest, value]) : value;
    return value !== undefined;
  }
}
