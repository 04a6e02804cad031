/**
 * The listener for machines in the provisioning network, and for their controllers, in plain HTTP, which firmware speaks:
 *
 *   GET  /boot                       The script that DHCP names. It loads the next one.
 *   GET  /boot/:mac                  The script of that machine (iPXE).
 *   GET  /files/:name                Kernel, initrd and images that SHA256SUMS names.
 *   GET  /d/:id/:token/job.cpio      The job of that machine, with the seed of its new system.
 *   GET  /d/:id/:token/boot.iso      The same, within the image that its controller presents as a medium.
 *   POST /d/:id/:proof/:news         A report of the machine.
 *
 * It logs no requests, since their paths contain tokens.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { onBehalfOfStranger } from '../../../entities/caller.ts';
import { ApiError } from '../../../entities/errors.ts';
import { isNews, type Netboot } from './boot.ts';
import { BootFolder } from './folder.ts';
import { Guard } from './guard.ts';
import { type Job, jobArchive } from './job.ts';
import { sendMedium } from './medium.ts';

interface Options {
  netboot: Netboot;
  /**
   * The folder with vmlinuz, initrd.img, boot.iso, and an image for each system: debian-13.img, .img.gz or .img.xz. Its
   * SHA256SUMS has a line for each of them.
   */
  folder: string;
  /** Receives internal errors. */
  onError: (fault: unknown) => void;
}
interface Parts extends Omit<Options, 'folder'> {
  folder: BootFolder;
}

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;
const MAC = /^[0-9a-f]{2}(?:[:-]?[0-9a-f]{2}){5}$/i;
/** A report has a line for each disk. */
const [REPORT_BYTES_MAX, REPORT_PIECES_MAX] = [16_384, 1_024];
/** Kernel arguments: a disk must not hide a part of itself (host protected area). */
const KERNEL = 'console=tty0 console=ttyS0,115200 libata.ignore_hpa=1';

/** The time for a request to arrive, and the interval in which Node looks for slow ones. */
const TIMES = {
  ...{ headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 1_000 },
  // Node would refuse each request without it by itself. The handler does so.
  requireHostHeader: false,
};

export function provisioningServer(options: Options): Server {
  const parts = { ...options, folder: new BootFolder(options.folder) };
  const server = createServer(TIMES, (request, response) => {
    if (!guard.admits(request)) return;
    response.shouldKeepAlive = false;
    if (request.method === 'POST' || request.url?.startsWith('/boot/')) guard.count(request);
    onBehalfOfStranger(request.socket.remoteAddress ?? null, () => answer(parts, request, response))
      .catch((fault) => {
        const isRefusal = fault instanceof ApiError;
        // A machine that is turned off during a download is no error.
        if (!response.destroyed && !isRefusal) options.onError(fault);
        if (response.headersSent) response.destroy();
        else say(response, isRefusal ? 503 : 500);
      })
      .finally(() => response.statusCode === 404 && guard.count(request));
  });
  const guard = new Guard(server);
  return server;
}

async function answer(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, room, ...rest] = (request.url ?? '').split('?')[0]!.split('/');
  const base = `http://${request.headers.host ?? ''}`;
  if (!/^[\w.:[\]-]+$/.test(request.headers.host ?? '')) return say(response, 400);
  const [first = '', token = '', what = ''] = rest;
  if (request.method === 'POST') {
    if (room !== 'd' || rest.length !== 3 || !isNews(what)) return refuse(request, response, 404);
    const text = await textOf(request);
    if (text === undefined) return refuse(request, response, 413);
    return say(response, (await parts.netboot.tell(first, token, what, text)) ? 204 : 404);
  }
  request.resume();
  if (request.method !== 'GET' && request.method !== 'HEAD') return say(response, 405);
  if (room === 'boot' && !rest.length)
    return say(response, 200, `#!ipxe\nchain --replace ${base}/boot/\${netX/mac:hexhyp}\n`);
  if (room === 'boot' && rest.length === 1 && MAC.test(first))
    return say(response, 200, await script(parts, macOf(first), base));
  if (room === 'files' && rest.length === 1 && NAME.test(first))
    return sendFile(parts.folder, first, request, response);
  if (room === 'd' && rest.length === 3 && (what === 'job.cpio' || what === 'boot.iso')) {
    const job = await parts.netboot.byToken(first, token);
    return job ? sendJob(parts, job, base, request, response) : say(response, 404);
  }
  return say(response, 404);
}

/** Lower case, with colons. */
const macOf = (text: string) => text.toLowerCase().replace(/[:-]/g, '').match(/../g)!.join(':');

async function script({ netboot, folder, onError }: Parts, mac: string, base: string): Promise<string> {
  const job = await netboot.byMac(mac);
  // iPXE exits to the next boot device, the disk.
  if (!job) return '#!ipxe\nexit\n';
  try {
    await folder.verify('vmlinuz', 'initrd.img');
    await imageOf(folder, job);
  } catch (fault) {
    onError(fault);
    return '#!ipxe\necho A file is missing. The machine tries again in a minute.\nsleep 60\nreboot\n';
  }
  const files = `${base}/files`;
  return `#!ipxe
kernel ${files}/vmlinuz ${KERNEL}
initrd ${files}/initrd.img
initrd ${base}${job.path}/job.cpio
boot
`;
}

const imageOf = async (folder: BootFolder, { what, found }: Job) =>
  what === 'install' ? folder.image(found.image) : undefined;

async function sendJob(
  { netboot, folder }: Parts,
  job: Job,
  base: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const archive = jobArchive(netboot.vault, job, base, await imageOf(folder, job));
  const isArchive = request.url!.endsWith('.cpio');
  if (!isArchive) await folder.verify('boot.iso');
  // Only a machine that gets its whole job begins.
  if (!(await netboot.begin(job))) return say(response, 404);
  if (isArchive) {
    response.writeHead(200, { 'content-length': archive.length, 'cache-control': 'no-store' }).end(archive);
    return;
  }
  await sendMedium(join(folder.path, 'boot.iso'), archive, request, response);
}

async function sendFile(folder: BootFolder, name: string, { method }: IncomingMessage, response: ServerResponse) {
  const path = join(folder.path, name);
  const found = (await folder.names(name)) && (await stat(path).catch(() => undefined));
  if (found === false || !found?.isFile()) return say(response, 404);
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': found.size });
  if (method === 'HEAD') return void response.end();
  await pipeline(createReadStream(path), response);
}

/** The text of a report. Undefined: it is too long, or has too many pieces. */
async function textOf(request: IncomingMessage): Promise<string | undefined> {
  let [text, pieces] = ['', 0];
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > REPORT_BYTES_MAX || ++pieces > REPORT_PIECES_MAX) return undefined;
  }
  return text;
}

function refuse(request: IncomingMessage, response: ServerResponse, status: number): void {
  request.resume();
  say(response, status);
}

function say(response: ServerResponse, status: number, text = ''): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }).end(text);
}
