/**
 * The virtual medium of a machine is `boot.iso` of the folder. The service puts the job of the machine into the place that
 * `build.sh` left for it.
 */
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { JOB_BYTES_MAX } from './job.ts';

const PLACE = Buffer.from('FREEHOLD-JOB\n'.repeat(8));
const SECTOR = 2048;
const CHUNK = 1 << 20;
/** The places that were found, by the path, size and time of their files. */
const places = new Map<string, number>();

/** Returns the medium with a job. @throws Error if the image has no place for a job */
export async function mediumOf(path: string, job: Buffer) {
  const { size, mtimeMs } = await stat(path);
  const key = `${path}:${size}:${mtimeMs}`;
  const place = places.get(key) ?? (await placeIn(path));
  places.set(key, place);
  const filled = Buffer.concat([job, Buffer.alloc(JOB_BYTES_MAX - job.length)]);
  const after = place + JOB_BYTES_MAX;
  async function* parts(first: number, end: number) {
    if (first < place) yield* createReadStream(path, { start: first, end: Math.min(place, end) - 1 });
    yield filled.subarray(Math.max(first - place, 0), Math.max(end - place, 0));
    if (end > after) yield* createReadStream(path, { start: Math.max(first, after), end: end - 1 });
  }
  return { size, read: (first: number, end: number) => Readable.from(parts(first, end), { objectMode: false }) };
}

async function placeIn(path: string): Promise<number> {
  const file = await open(path);
  try {
    const chunk = Buffer.alloc(CHUNK);
    for (let at = 0; ; at += CHUNK) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK, at);
      if (!bytesRead) throw new Error(`${path} has no place for a job. Build it anew.`);
      for (let from = 0; from < bytesRead; from += SECTOR)
        if (chunk.subarray(from, from + PLACE.length).equals(PLACE)) return at + from;
    }
  } finally {
    await file.close();
  }
}
