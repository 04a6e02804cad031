/** The frame of every page: head, header, navigation and footer. The pages have no scripts, and load only from this service. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { accentsOf } from './colours.ts';

/** The operator's words and colour. */
export interface Brand {
  name: string;
  /** Such as `#1f6f54`. */
  color: string;
  /** The operator's terms. Absent: the pages link to none. */
  termsUrl?: string | undefined;
  /** Where to report a weakness, as a URL. Absent: there is no security.txt. */
  securityContact?: string | undefined;
}

export interface Page {
  /** The path without a query. */
  path: string;
  title: string;
  /** One sentence for search engines. */
  description: string;
  body: VNode;
  /** The words of the search that led here. */
  query?: string;
}

const STYLE = readFileSync(join(import.meta.dirname, 'style.css'), 'utf8').replace(/\/\*.*?\*\/\n|^ +/gms, '');

/** The one style sheet, with the operator's colour. Its path names its content, so that browsers keep it. */
export function styleOf({ color }: Brand): { path: string; text: string } {
  const { light, dark } = accentsOf(color);
  const text = `:root{--accent-light:${light};--accent-dark:${dark}}\n${STYLE}`;
  const version = createHash('sha256').update(text).digest('base64url').slice(0, 12);
  return { path: `/site/${version}.css`, text };
}

const NAVIGATION = [
  { title: 'Prices', path: '/#prices', of: /^$/ },
  { title: 'Docs', path: '/docs', of: /^\/docs(?!\/api)/ },
  { title: 'API', path: '/docs/api', of: /^\/docs\/api/ },
  { title: 'Status', path: '/status', of: /^\/status/ },
];

export const searchForm = (query = '', label = 'Search the documentation'): VNode => html`
  <form class="search" role="search" action="/docs/search">
    <input type="search" name="q" value=${query} placeholder="Search" aria-label=${label} maxlength="100" />
    <button>Search</button>
  </form>`;

/** Returns the function that renders pages as HTML. @param hasDownloads whether the pages link to the downloads */
export function framed(brand: Brand, hasDownloads: boolean): (page: Page) => string {
  const style = styleOf(brand);
  return ({ path, title, description, body, query }) =>
    `<!doctype html>${renderToString(html`
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${path === '/' ? `${brand.name}: ${title}` : `${title} · ${brand.name}`}</title>
          <meta name="description" content=${description} />
          <link rel="icon" href="/favicon.svg" type="image/svg+xml" />
          <link rel="stylesheet" href=${style.path} />
        </head>
        <body>
          <a class="skip" href="#content">To the content</a>
          <header class="top">
            <div>
              <a class="brand" href="/"><img src="/favicon.svg" alt="" width="26" height="26" />${brand.name}</a>
              <nav aria-label="Main">
                ${NAVIGATION.map(
                  ({ title: name, path: to, of }) =>
                    html`<a href=${to} aria-current=${of.test(path) ? 'true' : null}>${name}</a>`,
                )}
              </nav>
              ${path !== '/docs/search' && searchForm(query)}
            </div>
          </header>
          ${body}
          <${Foot} brand=${brand} hasDownloads=${hasDownloads} />
        </body>
      </html>`)}\n`;
}

const Foot = ({ brand, hasDownloads }: { brand: Brand; hasDownloads: boolean }): VNode => html`
  <footer class="foot">
    <div>
      <p>${brand.name === 'Freehold' ? 'Freehold is free software.' : `${brand.name} runs on Freehold, which is free software.`}</p>
      <a href="/canary">Canary</a>
      <a href="/status">Status</a>
      ${hasDownloads && html`<a href="/downloads">Downloads</a>`}
      <a href="/v1/openapi.json">OpenAPI</a>
      <a href="/llms.txt">llms.txt</a>
      ${brand.securityContact && html`<a href="/.well-known/security.txt">Security</a>`}
      ${brand.termsUrl && html`<a href=${brand.termsUrl}>Terms</a>`}
    </div>
  </footer>`;

/** HTML that this service made itself. Never give it text of others. */
export const trusted = (markup: string, attributes: Record<string, string> = {}): VNode =>
  html`<div ...${attributes} dangerouslySetInnerHTML=${{ __html: markup }} />`;

export interface Entry {
  title: string;
  path: string;
  /** The entries below it. They show on its page and on theirs. */
  inner?: readonly Entry[];
}

/** A group of the side bar. */
export interface Group {
  title: string;
  entries: readonly Entry[];
}

/** The body of a page of the documentation, with its side bar. A narrow screen has a menu instead. */
export function documented(groups: readonly Group[], path: string, content: ComponentChildren, wide = false): VNode {
  return html`
    <details class="menu"><summary>Contents</summary><nav aria-label="Contents">${groupsOf(groups, path)}</nav></details>
    <div class="docs">
      <nav class="side" aria-label="Documentation"><div>${groupsOf(groups, path)}</div></nav>
      <main id="content" class=${wide ? 'wide' : null}>${content}</main>
    </div>`;
}

/** The group of the page comes first, because its part of the side bar must be in sight. */
const groupsOf = (groups: readonly Group[], path: string) =>
  [...groups]
    .sort((a, b) => Number(has(b, path)) - Number(has(a, path)))
    .map(({ title, entries }) => html`<h2>${title}</h2>${listOf(entries, path)}`);

const has = ({ entries }: Group, path: string): boolean =>
  entries.some((entry) => entry.path === path || entry.inner?.some((inner) => inner.path === path));

function listOf(entries: readonly Entry[], path: string): VNode {
  return html`<ul>${entries.map(({ title, path: to, inner = [] }) => {
    const isOpen = to === path || inner.some((entry) => entry.path === path);
    return html`<li>
      <a href=${to} aria-current=${to === path ? 'page' : null}>${title}</a>
      ${isOpen && inner.length > 0 && listOf(inner, path)}
    </li>`;
  })}</ul>`;
}
