/** The pages below /docs, with their side bar and their search. */
import { html } from 'htm/preact';
import type { Operation } from '../compile/operation.ts';
import type { Terms } from '../compile/terms.ts';
import { referenceOf } from './document.ts';
import { errorRows, errorsPage } from './errors.ts';
import { fieldsOf } from './fields.ts';
import { documented, type Group, type Page } from './frame.ts';
import { type Guide, guidePages, readGuides, searchableSections } from './guides.ts';
import { endpointPage, indexPage, nounPage } from './reference.ts';
import { type Findable, searchIn } from './search.ts';

export interface DocumentationOptions {
  publicUrl: string;
  operations: readonly Operation[];
  /** The OpenAPI document. */
  document: unknown;
  terms: Terms;
  /** The names of the files that visitors can download. */
  downloadable: readonly string[];
}

/** Reads the guides and the document. The pages themselves are made when somebody asks for them. */
export function documentation({ publicUrl, operations, document, terms, downloadable }: DocumentationOptions) {
  const guides = readGuides(publicUrl);
  const reference = referenceOf(document, operations);
  const { nouns, deref } = reference;
  const groups: Group[] = [
    {
      title: 'Guides',
      entries: [{ title: 'Overview', path: '/docs' }, ...guides, { title: 'Errors', path: '/docs/errors' }],
    },
    {
      title: 'API reference',
      entries: [
        { title: 'All operations', path: '/docs/api' },
        ...nouns.map(({ title, page, endpoints }) => ({
          title,
          path: page,
          inner: endpoints.map((endpoint) => ({ title: endpoint.title, path: endpoint.page })),
        })),
      ],
    },
  ];
  const options = { publicUrl, groups, downloadable };
  const guideBody = guidePages(guides, groups);
  const pages = new Map<string, () => Page>([
    ['/docs', () => overview(guides, groups)],
    ['/docs/errors', () => errorsPage(terms, groups)],
    ['/docs/api', () => indexPage(reference, options)],
  ]);
  for (const guide of guides)
    pages.set(guide.path, () => ({
      path: guide.path,
      title: guide.title,
      description: guide.summary,
      body: guideBody(guide),
    }));
  for (const noun of nouns) {
    pages.set(noun.page, () => nounPage(noun, options));
    for (const endpoint of noun.endpoints)
      pages.set(endpoint.page, () => endpointPage(endpoint, noun, reference, options));
  }

  const findable: Findable[] = [
    ...guides.flatMap(searchableSections),
    ...nouns.flatMap(({ title: of, endpoints }) =>
      endpoints.map(({ title, page, method, path, description, parameters, body, tool }) => ({
        title,
        of,
        path: page,
        text: `${method} ${path}. ${description.replace(/\s+/g, ' ')}`,
        words: [
          ...parameters.map(({ name }) => name),
          ...(body ? fieldsOf(body.schema, deref).map(({ name }) => name) : []),
          tool ?? '',
        ].join(' '),
      })),
    ),
    ...errorRows(terms).map(({ code, status, detail }) => ({
      title: code,
      of: 'Error',
      path: `/docs/errors#${code}`,
      text: `${status}. ${detail}`,
    })),
  ];
  return { guides, reference, groups, pages, search: searchIn(findable) };
}

const overview = (guides: readonly Guide[], groups: readonly Group[]): Page => ({
  path: '/docs',
  title: 'Documentation',
  description: 'Guides and the reference of the API.',
  body: documented(groups, '/docs', [
    html`<h1>Documentation</h1>`,
    html`<p class="lead">Begin with the <a href="/docs/quickstart">quickstart</a>. The <a href="/docs/api">reference</a> has every operation, with its fields, errors and samples.</p>`,
    html`<ul class="cards">
      ${[
        ...guides,
        { title: 'Errors', path: '/docs/errors', summary: 'Every code, with its status and its meaning.' },
      ].map(({ title, path, summary }) => html`<li><h2><a href=${path}>${title}</a></h2><p>${summary}</p></li>`)}
      <li><h2><a href="/docs/api">API reference</a></h2><p>Every operation of REST, and its tool over MCP.</p></li>
    </ul>`,
  ]),
});
