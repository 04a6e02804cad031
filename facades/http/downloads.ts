/**
 * Serves the files that `npm run package` has built, for users of the stdio package. /downloads lists the files, and serves
 * only those that SHA256SUMS names. Without a build, all of it is 404.
 */
import { existsSync, readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import { wholePage } from '../compile/outputs.ts';
import { wantsPage } from '../formats/receipt.ts';
import type { Admit } from '../rate-limit/admission.ts';
import { JSON_TYPE, PAGE_CSP } from './headers.ts';
import { cached, etagOf } from './rest.ts';

const BUILT = join(import.meta.dirname, '..', '..', 'dist');
const SUMS = 'SHA256SUMS';
const TYPES: Readonly<Record<string, string>> = {
  '.tgz': 'application/gzip',
  '.mcpb': 'application/zip',
  '.json': JSON_TYPE,
  '': 'text/plain; charset=utf-8',
};
const CACHE = 'public, max-age=60';

/** A file for users. */
export interface Download {
  name: string;
  url: string;
  size_bytes: number;
  /** In hex. */
  sha256: string;
}

export interface DownloadsOptions {
  admit: Admit;
  /** Shows the files to people. */
  showDownloads: (files: readonly Download[]) => Promise<string>;
  /** Without a trailing slash. */
  publicUrl: string;
  /** The folder of the files. Default: the folder that `npm run package` writes. */
  downloads?: string;
}

/** The names of the files at the start of the service, or none without a build. */
export function downloadable(folder = BUILT): string[] {
  const sums = join(folder, SUMS);
  return existsSync(sums) ? [...sumsIn(readFileSync(sums, 'utf8')).keys()] : [];
}

/** The checksums of a build by the names of its files. */
const sumsIn = (text: string): Map<string, string> =>
  new Map([...text.matchAll(/^([0-9a-f]{64}) {2}(\S+)$/gm)].map(([, sum, name]) => [name!, sum!]));

export function downloads(
  app: FastifyInstance,
  { admit, showDownloads, publicUrl, downloads: folder = BUILT }: DownloadsOptions,
): void {
  const onRequest = (request: FastifyRequest, reply: FastifyReply) => admit(request, reply);
  const reading = <T>(read: (path: string) => Promise<T>, name: string) =>
    read(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      throw new ApiError('not_found', 'There are no downloads yet. The operator builds them with npm run package.');
    });
  const content = (name: string) => reading((path) => readFile(path), name);
  const sizeOf = async (name: string) => (await reading((path) => stat(path), name)).size;
  const sums = async () => sumsIn((await content(SUMS)).toString());

  app.get('/downloads', { onRequest, config: { isPage: true } }, async (request, reply) => {
    const data: Download[] = [];
    for (const [name, sha256] of await sums())
      data.push({ name, url: `${publicUrl}/downloads/${name}`, size_bytes: await sizeOf(name), sha256 });
    reply.header('vary', 'accept');
    if (wantsPage(request.headers.accept)) {
      const page = await showDownloads(data);
      reply.headers({ 'content-type': 'text/html; charset=utf-8', 'content-security-policy': PAGE_CSP });
      return cached(request, reply, page, CACHE, etagOf(page));
    }
    const list = JSON.stringify({ ...wholePage(data), checksums_url: `${publicUrl}/downloads/${SUMS}` });
    return cached(request, reply, list, CACHE, etagOf(list));
  });

  app.get<{ Params: { name: string } }>('/downloads/:name', { onRequest }, async (request, reply) => {
    const { name } = request.params;
    const sum = (await sums()).get(name);
    if (name !== SUMS && !sum) throw new ApiError('not_found', 'There is no such file. See /downloads.');
    const bytes = await content(name);
    reply.header('content-type', TYPES[extname(name)] ?? 'application/octet-stream');
    reply.header('content-disposition', `attachment; filename="${name}"`);
    return cached(request, reply, bytes, CACHE, sum ? `"${sum}"` : etagOf(bytes));
  });
}
