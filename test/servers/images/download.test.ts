/** The download of an image: it ends in time, and only the whole image with its checksum counts. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { download } from '../../../provisioning/servers/images/download.ts';
import { serve, sha256 } from './source.ts';

const IMAGE = Buffer.alloc(300_000, 'image');
const LIMITS = { bytesMax: 1_000_000, totalMs: 60_000, silentMs: 30_000 };
const IMPATIENT = { ...LIMITS, silentMs: 1000 };
const never = new AbortController().signal;

async function read(url: string, { limits = LIMITS, signal = never, sum = sha256(IMAGE) } = {}): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of download({ url, sha256: sum }, signal, limits)) pieces.push(piece);
  return Buffer.concat(pieces);
}

describe('A download', () => {
  it('follows a redirect, and brings the image in pieces', async () => {
    const url = await serve(onTestFinished, (request, response) =>
      request.url === '/old' ? response.writeHead(302, { location: '/new' }).end() : response.end(IMAGE),
    );
    expect((await read(`${url}/old`)).equals(IMAGE)).toBe(true);
  });

  it('asks for the bytes as they are, also for compressed ones', async () => {
    const packed = gzipSync(IMAGE);
    const url = await serve(onTestFinished, (request, response) =>
      request.headers['accept-encoding'] === 'identity' ? response.end(packed) : response.writeHead(406).end(),
    );
    expect((await read(url, { sum: sha256(packed) })).equals(packed)).toBe(true);
  });

  it('fails before its end if the checksum is another one', async () => {
    const url = await serve(onTestFinished, (_, response) => response.end(IMAGE.subarray(1)));
    await expect(read(url)).rejects.toMatchObject({
      code: 'rejected',
      message: expect.stringMatching(/its SHA-256 is \w{64}, and not/),
    });
  });

  it('fails if the server breaks off', async () => {
    const url = await serve(onTestFinished, (_, response) => {
      response.writeHead(200, { 'content-length': IMAGE.length }).write(IMAGE.subarray(100));
      setTimeout(() => response.destroy(), 20);
    });
    await expect(read(url)).rejects.toMatchObject({ code: 'failed', message: expect.stringContaining(url) });
  });

  it('ends a circle of redirects', async () => {
    const url = await serve(onTestFinished, (_, response) => response.writeHead(302, { location: '/again' }).end());
    await expect(read(url)).rejects.toMatchObject({ code: 'failed', message: expect.stringContaining('redirect') });
  });

  it.each([
    ['before its answer', false],
    ['within the image', true],
  ])('gives up a server that is silent %s', async (_, begins) => {
    const url = await serve(onTestFinished, (__, response) => {
      if (begins) response.writeHead(200).write('image');
    });
    await expect(read(url, { limits: IMPATIENT })).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('silent for 1 s'),
    });
  });

  it('gives up a server that sends too slowly', async () => {
    const url = await serve(onTestFinished, (_, response) => {
      const drops = setInterval(() => response.write('i'), 20);
      response.once('close', () => clearInterval(drops));
    });
    const limits = { ...LIMITS, totalMs: 400 };
    await expect(read(url, { limits })).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('not complete after 0.4'),
    });
  });

  it('waits for an engine that takes its time', async () => {
    const url = await serve(onTestFinished, (_, response) => response.end(IMAGE));
    const pieces = download({ url, sha256: sha256(IMAGE) }, never, IMPATIENT);
    await pieces.next();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect((await pieces.next()).done).toBe(false);
    await pieces.return(undefined);
  });

  it('refuses an image that is too large', async () => {
    const url = await serve(onTestFinished, (_, response) => response.end(IMAGE));
    const limits = { ...LIMITS, bytesMax: IMAGE.length - 1 };
    await expect(read(url, { limits })).rejects.toMatchObject({ code: 'rejected' });
  });

  it('tells the status of a server that has no image', async () => {
    const url = await serve(onTestFinished, (_, response) => response.writeHead(404).end());
    await expect(read(url)).rejects.toMatchObject({ code: 'failed', message: `${url}: HTTP 404` });
  });

  it('ends when the worker ends', async () => {
    const url = await serve(onTestFinished, () => {});
    const end = new AbortController();
    const reading = read(url, { signal: end.signal });
    end.abort(new Error('The worker stops.'));
    await expect(reading).rejects.toThrow('The worker stops.');
  });
});
