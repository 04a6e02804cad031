/**
 * Serves the operator's console on the internal listener: a page, its sources, and the libraries that they import. There is no
 * build: the service strips the types of a source once. The page loads nothing from other hosts.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const SOURCES = join(import.meta.dirname, 'src');
const PACKAGES = join(import.meta.dirname, '../../node_modules');
/** The modules of libraries that the sources import, as files of their packages. */
const MODULES: Record<string, string> = {
  preact: 'preact/dist/preact.mjs',
  'preact/hooks': 'preact/hooks/dist/hooks.mjs',
  htm: 'htm/dist/htm.mjs',
  'htm/preact': 'htm/preact/index.mjs',
  '@preact/signals': '@preact/signals/dist/signals.mjs',
  '@preact/signals-core': '@preact/signals-core/dist/signals-core.mjs',
  'graphql-ws': 'graphql-ws/dist/client.js',
};
/** A file of the service that the sources import, too. They see it at another path. */
const SHARED = { path: '/console/lib/csv-line.ts', seen: '/formats/csv-line.ts', file: '../formats/csv-line.ts' };
const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries([
    ...Object.entries(MODULES).map(([name, file]) => [name, `/console/lib/${file}`]),
    [SHARED.seen, SHARED.path],
  ]),
});
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Freehold</title>
<link rel="icon" href="/console/icon.svg">
<link rel="stylesheet" href="/console/style.css">
<script type="importmap">${IMPORT_MAP}</script>
<script type="module" src="/console/main.ts"></script>
<body><noscript>The console needs JavaScript. GraphQL at /graphql does not.</noscript></body>
</html>
`;
/** Allows scripts of this service alone, and no HTML from text (Trusted Types). */
const CSP = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(IMPORT_MAP).digest('base64')}'`,
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.ts': 'text/javascript',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
};

interface File {
  type: string;
  etag: string;
  plain: Buffer;
  compressed: Buffer;
}

/** The texts of all files by their paths. To make them all at once would hold up the requests of others. */
const texts: ReadonlyMap<string, () => string> = new Map([...ours(), ...libraries()]);
/** The paths of all files. */
export const CONSOLE_PATHS: readonly string[] = [...texts.keys()];

const made = new Map<string, File>();
/** Returns the file at a path, or undefined without one. The first request for a file makes it. */
export function consoleFile(path: string): File | undefined {
  const text = texts.get(path);
  const file = made.get(path) ?? (text && fileOf(path, text()));
  if (file) made.set(path, file);
  return file;
}

/** Answers a request for a file of the console. @returns whether there is such a file */
export function serveConsole({ method, url = '', headers }: IncomingMessage, response: ServerResponse): boolean {
  const path = url.split('?')[0]!;
  if (path !== '/' && !path.startsWith('/console/')) return false;
  const file = consoleFile(path === '/' ? '/index.html' : path);
  if (!file) return false;
  const isCompressed = /\bgzip\b/.test(headers['accept-encoding'] ?? '');
  const body = isCompressed ? file.compressed : file.plain;
  response.setHeader('content-security-policy', CSP);
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('vary', 'accept-encoding');
  response.setHeader('cache-control', 'no-cache');
  response.setHeader('etag', file.etag);
  if (method !== 'GET' && method !== 'HEAD') response.writeHead(405, { allow: 'GET, HEAD' }).end();
  else if (headers['if-none-match'] === file.etag) response.writeHead(304).end();
  else {
    if (isCompressed) response.setHeader('content-encoding', 'gzip');
    const type = `${file.type}; charset=utf-8`;
    response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(method === 'HEAD' ? '' : body);
  }
  return true;
}

function fileOf(path: string, text: string): File {
  const plain = Buffer.from(text);
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return { type: TYPES[extname(path)]!, etag, plain, compressed: gzipSync(plain) };
}

function ours(): [string, () => string][] {
  const names = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => extname(name));
  const sources = names.map((name): [string, () => string] => [`/console/${name}`, source(join(SOURCES, name))]);
  return [['/index.html', () => PAGE], [SHARED.path, source(join(import.meta.dirname, SHARED.file))], ...sources];
}
function source(file: string): () => string {
  const text = () => readFileSync(file, 'utf8');
  return extname(file) === '.ts' ? () => stripTypeScriptTypes(text()) : text;
}

/** The modules of libraries, with the other scripts in their folders, which they import. */
function libraries(): [string, () => string][] {
  const folders = new Set(Object.values(MODULES).map((file) => file.slice(0, file.lastIndexOf('/'))));
  return [...folders].flatMap((folder) => {
    const isOurs = (name: string) =>
      Object.values(MODULES).includes(`${folder}/${name}`) || /^[\w-]+-[\w-]+\.js$/.test(name);
    const names = readdirSync(join(PACKAGES, folder)).filter(isOurs);
    return names.map((name): [string, () => string] => {
      const text = () => readFileSync(join(PACKAGES, folder, name), 'utf8');
      return [`/console/lib/${folder}/${name}`, () => text().replace(/^\/\/# sourceMappingURL=.*$/m, '')];
    });
  });
}
