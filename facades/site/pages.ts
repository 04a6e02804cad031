/** Makes the texts of the site. The first visitor loads this file, the guides and their renderer. */
import { html } from 'htm/preact';
import type { Operation } from '../compile/operation.ts';
import type { ContextOf } from '../compile/run.ts';
import type { Terms } from '../compile/terms.ts';
import type { Download } from '../http/downloads.ts';
import { documentation } from './documentation.ts';
import { downloadsPage } from './downloads.ts';
import { factsOf, fresh } from './facts.ts';
import { type Brand, framed, type Page, styleOf } from './frame.ts';
import { homePage } from './home.ts';
import { searchPage } from './search.ts';
import { canaryPage, statusPage } from './transparency.ts';
import { llmsText } from './well-known.ts';

export interface PagesOptions {
  brand: Brand;
  /** Without a trailing slash. */
  publicUrl: string;
  operations: readonly Operation[];
  /** Returns the OpenAPI document. */
  document: () => object;
  terms: Terms;
  contextOf: ContextOf;
  /** The names of the files that visitors can download. */
  downloadable: readonly string[];
}

export type Pages = ReturnType<typeof pagesOf>;

export function pagesOf(options: PagesOptions) {
  const { brand, publicUrl, operations, contextOf, document } = options;
  const toHtml = framed(brand, options.downloadable.length > 0);
  const docs = documentation({ ...options, document: document() });
  const facts = factsOf(operations, contextOf);
  const live = (make: () => Promise<Page>) => fresh(async () => toHtml(await make()));
  const style = styleOf(brand);
  const made = new Map<string, string>();
  return {
    home: live(async () => {
      const [catalog, { data: coins }, status] = await Promise.all([facts.catalog(), facts.coins(), facts.status()]);
      return homePage(brand, publicUrl, { catalog, coins, status });
    }),
    status: live(async () => statusPage(await facts.status())),
    canary: live(async () => canaryPage(await facts.canary())),
    /** The page at a path below /docs. Each is made once. */
    documentation(path: string): string | undefined {
      const make = docs.pages.get(path);
      const page = made.get(path) ?? (make && toHtml(make()));
      if (page) made.set(path, page);
      return page;
    },
    /** The guide at a path as Markdown. */
    markdown: (path: string): string | undefined => docs.guides.find((guide) => guide.path === path)?.text,
    search: (query: string): string => toHtml(searchPage(docs.search, query, docs.groups)),
    llms: (): string => llmsText(brand, publicUrl, docs.guides, docs.reference),
    style: (path: string): string | undefined => (path === style.path ? style.text : undefined),
    error: (title: string, detail: string): string => toHtml(errorPage(title, detail)),
    downloads: (files: readonly Download[]): string => toHtml(downloadsPage(files, publicUrl)),
  };
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
