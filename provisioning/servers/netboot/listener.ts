/**
 * The listener for machines in the provisioning network, in plain HTTP, which firmware speaks:
 *
 *   GET  /boot                       The script that DHCP names. It loads the next one.
 *   GET  /boot/:mac                  The script of that machine (iPXE).
 *   GET  /files/:name                Kernel, initrd and images.
 *   GET  /d/:id/:token/:file         The seed of the new system (cloud-init, NoCloud).
 *   POST /d/:id/:token/:news         A report of the machine.
 *
 * It logs no requests, since their paths contain tokens.
 */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isNews, isSeedFile, type Job, type Netboot } from './boot.ts';

interface Options {
  netboot: Netboot;
  /** The folder with vmlinuz, initrd.img, and an image for each system: debian-13.img, .img.gz or .img.xz. */
  folder: string;
  /** Receives internal errors. */
  onError: (fault: unknown) => void;
}

const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const MAC = /^[0-9a-f]{2}(?:[:-]?[0-9a-f]{2}){5}$/i;

export function provisioningServer(options: Options): Server {
  const server = createServer((request, response) => {
    answer(options, request, response).catch((fault) => {
      // A machine that is turned off during a download is no error.
      if (!response.destroyed) options.onError(fault);
      if (response.headersSent) response.destroy();
      else say(response, 500);
    });
  });
  server.requestTimeout = 30_000;
  return server;
}

async function answer(options: Options, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { netboot } = options;
  request.resume(); // The report is in the path, so the body is ignored.
  const [, room, ...rest] = (request.url ?? '').split('?')[0]!.split('/');
  const base = `http://${request.headers.host ?? ''}`;
  if (!/^[\w.:[\]-]+$/.test(request.headers.host ?? '')) return say(response, 400);
  const [first = '', token = '', what = ''] = rest;
  if (request.method === 'POST') {
    if (room !== 'd' || rest.length !== 3 || !isNews(what)) return say(response, 404);
    return say(response, (await netboot.tell(first, token, what)) ? 204 : 404);
  }
  if (request.method !== 'GET') return say(response, 405);
  if (room === 'boot' && !rest.length)
    return say(response, 200, `#!ipxe\nchain --replace ${base}/boot/\${netX/mac:hexhyp}\n`);
  if (room === 'boot' && rest.length === 1 && MAC.test(first))
    return say(response, 200, await script(options, await netboot.job(macOf(first)), base));
  if (room === 'files' && rest.length === 1 && NAME.test(first)) return sendFile(join(options.folder, first), response);
  if (room === 'd' && rest.length === 3 && isSeedFile(what)) {
    const text = await netboot.seed(first, token, what, base);
    return text === undefined ? say(response, 404) : say(response, 200, text);
  }
  return say(response, 404);
}

/** Lower case, with colons. */
const macOf = (text: string) => text.toLowerCase().replace(/[:-]/g, '').match(/../g)!.join(':');

async function script({ folder, onError }: Options, job: Job | undefined, base: string): Promise<string> {
  // iPXE exits to the next boot device, the disk.
  if (!job) return '#!ipxe\nexit\n';
  const files = `${base}/files`;
  const image = job.what === 'install' ? await imageOf(folder, job.image) : 'none';
  if (!image) {
    onError(new Error(`The image of ${job.image} is missing: ${join(folder, job.image)}.img.`));
    return '#!ipxe\necho The image is missing. The machine tries again in a minute.\nsleep 60\nreboot\n';
  }
  const settings = `fh_do=${job.what} fh_disk=${job.disk} fh_base=${base}${job.path} fh_image=${files}/${image}`;
  return [
    '#!ipxe',
    `kernel ${files}/vmlinuz console=tty0 console=ttyS0,115200 ${settings}`,
    `initrd ${files}/initrd.img`,
    'boot',
    '',
  ].join('\n');
}

async function imageOf(folder: string, code: string): Promise<string | undefined> {
  const names = new Set(await readdir(folder));
  return ['.img', '.img.gz', '.img.xz'].map((ending) => `${code}${ending}`).find((name) => names.has(name));
}

async function sendFile(path: string, response: ServerResponse): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) return say(response, 404);
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': found.size });
  await pipeline(createReadStream(path), response);
}

function say(response: ServerResponse, status: number, text = ''): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }).end(text);
}
