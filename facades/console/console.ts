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
import { modelText } from './model.ts';

const SOURCES = join(import.meta.dirname, 'src');
const PACKAGES = join(import.meta.dirname, '../../node_modules');
const SCHEMA = join(import.meta.dirname, '../../schema/schema.graphql');
/** The modules of libraries that the sources import, as files of their packages. */
const MODULES: Record<string, string> = {
  preact: 'preact/dist/preact.mjs',
  'preact/hooks': 'preact/hooks/dist/hooks.mjs',
  htm: 'htm/dist/htm.mjs',
  'htm/preact': 'htm/preact/index.mjs',
  '@preact/signals': '@preact/signals/dist/signals.mjs',
  '@preact/signals-core': '@preact/signals-core/dist/signals-core.mjs',
  'graphql-ws': 'graphql-ws/dist/client.js',
  uqr: 'uqr/dist/index.mjs',
};
/** A file of the service that the sources import, too. They see it at another path. */
const SHARED = { name: 'lib/csv-line.ts', seen: '/formats/csv-line.ts', file: '../formats/csv-line.ts' };
/** The schema for forms and lists. */
const MODEL = 'model.json';

/** The files by their names in the console. */
const files: ReadonlyMap<string, string> = new Map([...ours(), ...libraries()]);
/** Another content of a file has another version. So browsers keep the files of a version, and ask for the page alone. */
const VERSION = hashOf(...[...files.values(), SCHEMA].map((file) => readFileSync(file)));
const ROOT = `/console/${VERSION}`;
/** The paths of all files but the page. */
export const CONSOLE_PATHS: readonly string[] = [...files.keys(), MODEL].map((name) => `${ROOT}/${name}`);

const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries([
    ...Object.entries(MODULES).map(([name, file]) => [name, `${ROOT}/lib/${file}`]),
    [SHARED.seen, `${ROOT}/${SHARED.name}`],
  ]),
});
/** The page names each module, so that a browser asks for all at once. An import would name it late. */
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Freehold</title>
<link rel="icon" href="${ROOT}/icon.svg">
<link rel="stylesheet" href="${ROOT}/style.css">
<script type="importmap">${IMPORT_MAP}</script>
<link rel="preload" as="fetch" crossorigin href="${ROOT}/${MODEL}">
${CONSOLE_PATHS.filter((path) => /\.(ts|m?js)$/.test(path))
  .map((path) => `<link rel="modulepreload" href="${path}">`)
  .join('\n')}
<script type="module" src="${ROOT}/main.ts"></script>
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
  '.json': 'application/json',
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

const made = new Map<string, File>();
/** Returns the file at a path, or undefined without one. The first request for a file makes it. */
export function consoleFile(path: string): File | undefined {
  // A page of another version takes the files of this one.
  const name = path === '/' ? 'index.html' : path.replace(/^\/console\/[^/]+\//, '');
  const file = made.get(name) ?? fileOf(name);
  if (file) made.set(name, file);
  return file;
}

/** Answers a request for a file of the console. @returns whether there is such a file */
export function serveConsole({ method, url = '', headers }: IncomingMessage, response: ServerResponse): boolean {
  const path = url.split('?')[0]!;
  if (path !== '/' && !path.startsWith('/console/')) return false;
  const file = consoleFile(path);
  if (!file) return false;
  const isCompressed = /\bgzip\b/.test(headers['accept-encoding'] ?? '');
  const body = isCompressed ? file.compressed : file.plain;
  response.setHeader('content-security-policy', CSP);
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('vary', 'accept-encoding');
  response.setHeader('cache-control', path.startsWith(`${ROOT}/`) ? 'max-age=31536000, immutable' : 'no-cache');
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

function fileOf(name: string): File | undefined {
  const text = textOf(name);
  if (text === undefined) return undefined;
  const plain = Buffer.from(text);
  return { type: TYPES[extname(name)]!, etag: `"${hashOf(plain)}"`, plain, compressed: gzipSync(plain) };
}
function textOf(name: string): string | undefined {
  if (name === 'index.html') return PAGE;
  if (name === MODEL) return modelText();
  const file = files.get(name);
  const text = file && readFileSync(file, 'utf8');
  return extname(name) === '.ts' && text
    ? stripTypeScriptTypes(text)
    : text?.replace(/^\/\/# sourceMappingURL=.*$/m, '');
}
function hashOf(...parts: Buffer[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64url').slice(0, 22);
}

function ours(): [string, string][] {
  const names = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => extname(name));
  const sources = names.map((name): [string, string] => [name, join(SOURCES, name)]);
  return [[SHARED.name, join(import.meta.dirname, SHARED.file)], ...sources];
}

/** The modules of libraries, with the other scripts in their folders, which they import. */
function libraries(): [string, string][] {
  const folders = new Set(Object.values(MODULES).map((file) => file.slice(0, file.lastIndexOf('/'))));
  return [...folders].flatMap((folder) => {
    const isOurs = (name: string) =>
      Object.values(MODULES).includes(`${folder}/${name}`) || /^[\w-]+-[\w-]+\.js$/.test(name);
    const names = readdirSync(join(PACKAGES, folder)).filter(isOurs);
    return names.map((name): [string, string] => [`lib/${folder}/${name}`, join(PACKAGES, folder, name)]);
  });
}
