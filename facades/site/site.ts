/**
 * The site on the public listener: the first page, the documentation, and files for programs that meet the domain. The first
 * visitor loads all that makes the pages. Pages that depend on nothing are made once.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import { sendEncoded } from './encoded.ts';
import { JSON_TYPE, PAGE_CSP } from '../http/headers.ts';
import { cached, etagOf } from '../http/rest.ts';
import type { AdmitPublic } from '../rate-limit/admission.ts';
import { iconOf } from './colours.ts';
import { FRESH_SECONDS } from './facts.ts';
import type { Pages, PagesOptions } from './pages.ts';
import { agentCard, API_CATALOG_TYPE, apiCatalog, ROBOTS, securityText } from './well-known.ts';

export interface SiteOptions extends PagesOptions {
  /** Counts a request for a page. */
  admit: AdmitPublic;
  /** The detail for a path that does not exist. */
  lost: (url: string) => string;
}

const SEARCH = '/docs/search';
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

/** A text, or the function that makes it for a request. Without one, the path does not exist. */
type Content =
  | string
  | ((pages: Pages, request: FastifyRequest, reply: FastifyReply) => string | undefined | Promise<string>);

/** Adds the routes. @returns the pages, for the routes of others */
export async function site(app: FastifyInstance, options: SiteOptions): Promise<() => Promise<Pages>> {
  const { brand, publicUrl, admit, lost } = options;
  let loading: Promise<Pages> | undefined;
  const pages = () => (loading ??= import('./pages.ts').then(({ pagesOf }) => pagesOf(options)));
  const add = (path: string, type: string, cacheControl: string, content: Content) => {
    const handler = async (request: FastifyRequest, reply: FastifyReply) => {
      reply.header('content-type', type);
      const text = typeof content === 'string' ? content : await content(await pages(), request, reply);
      if (reply.sent) return reply;
      if (text === undefined) throw new ApiError('not_found', lost(request.url));
      // Each search has a text of its own.
      if (path === SEARCH) return cached(request, reply, text, cacheControl, etagOf(text));
      return sendEncoded(request, reply, text, cacheControl);
    };
    const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
      await admit(request, reply);
      reply.header('content-security-policy', PAGE_CSP);
      // RFC 9727, section 3.
      if (path === '/') reply.header('link', '</.well-known/api-catalog>; rel="api-catalog"');
    };
    app.get(path, { onRequest, config: { isPage: true } }, handler);
  };
  add('/', HTML, SOON, ({ home }) => home());
  add('/status', HTML, SOON, ({ status }) => status());
  add('/canary', HTML, SOON, ({ canary }) => canary());
  add('/docs', HTML, HOUR, ({ documentation }) => documentation('/docs'));
  add('/docs/*', HTML, HOUR, documentedAt);
  add(SEARCH, HTML, SOON, ({ search }, { query }) => {
    const { q = '' } = query as { q?: string | string[] };
    return search([q].flat()[0]!);
  });
  add('/site/:style', 'text/css; charset=utf-8', FOR_EVER, ({ style }, { url }) => style(url));
  for (const path of ['/favicon.svg', '/favicon.ico']) add(path, 'image/svg+xml', HOUR, iconOf(brand));
  add('/llms.txt', TEXT, HOUR, ({ llms }) => llms());
  add('/robots.txt', TEXT, HOUR, ROBOTS);
  add('/.well-known/api-catalog', API_CATALOG_TYPE, HOUR, JSON.stringify(apiCatalog(publicUrl)));
  add('/.well-known/agent-card.json', JSON_TYPE, HOUR, JSON.stringify(agentCard(brand, publicUrl)));
  const { securityContact: contact } = brand;
  if (contact) add('/.well-known/security.txt', TEXT, HOUR, () => securityText(contact, publicUrl, Date.now()));
  return pages;
}

/** Finds a page below /docs, or the Markdown of a guide. A slash at its end leads to the page. */
function documentedAt(pages: Pages, { url }: FastifyRequest, reply: FastifyReply): string | undefined {
  const path = url.split('?')[0]!;
  if (path.endsWith('.md')) {
    reply.header('content-type', 'text/markdown; charset=utf-8');
    return pages.markdown(path.slice(0, -'.md'.length));
  }
  const found = pages.documentation(path);
  const bare = path.replace(/\/$/, '');
  if (!found && pages.documentation(bare)) reply.redirect(bare, 308);
  return found;
}
