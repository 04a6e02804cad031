/**
 * The site on the public listener: the first page, the documentation, and files for programs that meet the domain. Pages
 * that depend on nothing are made once, when somebody first asks for them.
 */
import compress from '@fastify/compress';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'htm/preact';
import type { Operation } from '../compile/operation.ts';
import type { ContextOf } from '../compile/run.ts';
import type { Terms } from '../compile/terms.ts';
import type { AdmitPublic } from '../rate-limit/admission.ts';
import type { Download } from '../http/downloads.ts';
import { JSON_TYPE } from '../http/headers.ts';
import { cached, etagOf } from '../http/rest.ts';
import { documentation } from './documentation.ts';
import { downloadsPage } from './downloads.ts';
import { FRESH_SECONDS, factsOf, fresh } from './facts.ts';
import { type Brand, framed, iconOf, PAGE_CSP, type Page, styleOf } from './frame.ts';
import { homePage } from './home.ts';
import { searchPage } from './search.ts';
import { canaryPage, statusPage } from './transparency.ts';
import { agentCard, API_CATALOG_TYPE, apiCatalog, llmsText, ROBOTS, securityText } from './well-known.ts';

export interface SiteOptions {
  brand: Brand;
  /** Without a trailing slash. */
  publicUrl: string;
  operations: readonly Operation[];
  /** The OpenAPI document. */
  document: unknown;
  terms: Terms;
  contextOf: ContextOf;
  /** The names of the files that visitors can download. */
  downloadable: readonly string[];
  /** Counts a request for a page. */
  admit: AdmitPublic;
}

/** Compresses answers that have no secrets. Beside a secret, their length could tell it to an attacker (BREACH). */
export const COMPRESSED = { encodings: ['gzip' as const], threshold: 1024 };

const HTML = 'text/html; charset=utf-8';
const TEXT = 'text/plain; charset=utf-8';
const HOUR = 'public, max-age=3600';
const SOON = `public, max-age=${FRESH_SECONDS}`;
const FOR_EVER = 'public, max-age=31536000, immutable';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether people open the path in a browser. Then its errors are pages, too. */
    isPage?: boolean;
  }
}

/** An answer that depends on nothing but its version. */
type Content = string | ((request: FastifyRequest) => Promise<string>);

/** Pages for the routes of others. */
export interface Shown {
  /** Shows an error to people. */
  error: (title: string, detail: string) => string;
  downloads: (files: readonly Download[]) => string;
}

/** Adds the route of a content. */
type Add = (path: string, type: string, cacheControl: string, content: Content) => void;

/** Adds the routes. */
export async function site(app: FastifyInstance, options: SiteOptions): Promise<Shown> {
  const { brand, publicUrl, admit } = options;
  await app.register(compress, { global: false, globalDecompression: false });
  const add: Add = (path, type, cacheControl, content) => {
    const handler = async (request: FastifyRequest, reply: FastifyReply) => {
      const text = typeof content === 'string' ? content : await content(request);
      // Weak: the compressed bytes differ from the plain ones.
      return cached(request, reply.header('content-type', type), text, cacheControl, `W/${etagOf(text)}`);
    };
    const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
      await admit(request, reply);
      reply.header('content-security-policy', PAGE_CSP);
      // RFC 9727, section 3.
      if (path === '/') reply.header('link', '</.well-known/api-catalog>; rel="api-catalog"');
    };
    app.get(path, { onRequest, compress: COMPRESSED, config: { isPage: true } }, handler);
  };
  const toHtml = framed(brand, options.downloadable.length > 0);
  const docs = documentation(options);
  addLivePages(add, toHtml, options);
  for (const [path, make] of docs.pages) {
    let made: string | undefined;
    add(path, HTML, HOUR, async () => (made ??= toHtml(make())));
    app.get(`${path}/`, { onRequest: admit }, (_request, reply) => reply.redirect(path, 308));
  }
  for (const { path, text } of docs.guides) add(`${path}.md`, 'text/markdown; charset=utf-8', HOUR, text);
  add('/docs/search', HTML, SOON, async ({ query }) => {
    const { q = '' } = query as { q?: string | string[] };
    return toHtml(searchPage(docs.search, [q].flat()[0]!, docs.groups));
  });
  addFiles(add, options, llmsText(brand, publicUrl, docs.guides, docs.reference));
  return {
    error: (title, detail) => toHtml(errorPage(title, detail)),
    downloads: (files) => toHtml(downloadsPage(files, publicUrl)),
  };
}

/** Adds the pages about the running service. */
function addLivePages(add: Add, toHtml: (page: Page) => string, options: SiteOptions): void {
  const { brand, publicUrl, operations, contextOf } = options;
  const facts = factsOf(operations, contextOf);
  const live = (path: string, make: () => Promise<Page>) =>
    add(
      path,
      HTML,
      SOON,
      fresh(async () => toHtml(await make())),
    );
  live('/', async () => {
    const [catalog, { data: coins }, status] = await Promise.all([facts.catalog(), facts.coins(), facts.status()]);
    return homePage(brand, publicUrl, { catalog, coins, status });
  });
  live('/status', async () => statusPage(await facts.status()));
  live('/canary', async () => canaryPage(await facts.canary()));
}

/** Adds the style, the sign, and the files for programs. */
function addFiles(add: Add, { brand, publicUrl }: SiteOptions, llms: string): void {
  const style = styleOf(brand);
  add(style.path, 'text/css; charset=utf-8', FOR_EVER, style.text);
  for (const path of ['/favicon.svg', '/favicon.ico']) add(path, 'image/svg+xml', HOUR, iconOf(brand));
  add('/llms.txt', TEXT, HOUR, llms);
  add('/robots.txt', TEXT, HOUR, ROBOTS);
  add('/.well-known/api-catalog', API_CATALOG_TYPE, HOUR, JSON.stringify(apiCatalog(publicUrl)));
  add('/.well-known/agent-card.json', JSON_TYPE, HOUR, JSON.stringify(agentCard(brand, publicUrl)));
  const { securityContact: contact } = brand;
  if (contact) add('/.well-known/security.txt', TEXT, HOUR, async () => securityText(contact, publicUrl, Date.now()));
}

const errorPage = (title: string, detail: string): Page => ({
  path: '',
  title,
  description: detail,
  body: html`
    <main class="plain" id="content">
      <h1>${title}</h1>
      <p class="lead">${detail}</p>
      <ul>
        <li><a href="/">First page</a></li>
        <li><a href="/docs">Documentation</a></li>
        <li><a href="/docs/api">API reference</a></li>
        <li><a href="/status">Status</a></li>
      </ul>
    </main>`,
});
