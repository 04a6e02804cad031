/** The guides: parts of the Markdown of the project. So readers of the source and of the site read the same text. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { documented, type Entry, type Group, trusted } from './frame.ts';
import { anchorOf, plainOf, rendered } from './markdown.ts';
import type { Findable } from './search.ts';

/** A part of a Markdown file: chosen sections, or all but some. */
interface Source {
  file: string;
  /** The headings of its sections. Absent: the whole file. */
  only?: readonly string[];
  without?: readonly string[];
}

interface Plan {
  slug: string;
  title: string;
  summary: string;
  sources: readonly Source[];
}

const API = 'docs/use/api.md';
/** In the order of the side bar. `errors` has a page of its own. */
export const PLANS: readonly Plan[] = [
  {
    slug: 'quickstart',
    title: 'Quickstart',
    summary: 'From nothing to a running server, and back.',
    sources: [{ file: 'README.md', only: ['Quickstart with curl'] }],
  },
  {
    slug: 'cli',
    title: 'The command line',
    summary: 'Commands for people and scripts.',
    sources: [{ file: 'docs/use/cli.md' }],
  },
  {
    slug: 'sdk',
    title: 'The SDKs',
    summary: 'Clients for TypeScript and Python.',
    sources: [{ file: 'docs/use/sdk.md' }],
  },
  {
    slug: 'authentication',
    title: 'Authentication',
    summary: 'Accounts, API keys, scopes, limits, the second factor, and OAuth for machines.',
    sources: [{ file: API, only: ['Accounts and credentials', 'OAuth for machines', 'Proof of work'] }],
  },
  {
    slug: 'payments',
    title: 'Payments and x402',
    summary: 'Top-ups in coins, bonuses, receipts, and payment within a request.',
    sources: [{ file: API, only: ['Paying'] }],
  },
  {
    slug: 'servers',
    title: 'Servers',
    summary: 'Order, change, resize and delete servers. Traffic and metrics.',
    sources: [{ file: API, only: ['Servers'] }],
  },
  {
    slug: 'requests',
    title: 'Requests and answers',
    summary: 'Lists, idempotency keys, sizes, caching, and messages with the operator.',
    sources: [{ file: API, only: ['Requests and answers', 'Shorthand', 'Messages'] }],
  },
  {
    slug: 'limits',
    title: 'Limits',
    summary: 'How many calls, changes and logins the service takes.',
    sources: [{ file: API, only: ['Limits'] }],
  },
  {
    slug: 'webhooks',
    title: 'Webhooks',
    summary: 'Signed calls to your URL at every change.',
    sources: [{ file: 'docs/use/webhooks.md' }],
  },
  {
    slug: 'agents',
    title: 'Agents and MCP',
    summary: 'The same operations as tools for agents, and the directory of agents.',
    sources: [
      { file: 'docs/use/mcp.md', without: ['For operators'] },
      { file: API, only: ['Agents'] },
    ],
  },
  {
    slug: 'transparency',
    title: 'Transparency',
    summary: 'The warrant canary, the network, the status, and signed digests of the audit logs.',
    sources: [{ file: API, only: ['Transparency'] }],
  },
];

export interface Guide extends Entry {
  summary: string;
  /** Markdown with the addresses of this service. */
  text: string;
}

const ROOT = join(import.meta.dirname, '..', '..');
const CODE = /^```[\s\S]*?^```/gm;

/** The sections of a file: each begins with a heading of the second level. The first is its introduction. */
function sectionsOf(file: string): { heading: string; text: string }[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  return source.split(/^(?=## )/m).map((text) => ({ heading: /^## (.*)/.exec(text)?.[1] ?? '', text }));
}

/** Takes the chosen sections, in the order of the choice. @throws Error if a section does not exist */
function textOf({ file, only, without = [] }: Source): string {
  const sections = sectionsOf(file);
  const named = (heading: string) => {
    const found = sections.find((section) => section.heading === heading);
    if (!found) throw new Error(`${file} lacks a section of the site: ${heading}.`);
    return found;
  };
  const chosen = only ? only.map(named) : sections.filter(({ heading }) => !without.includes(heading));
  return chosen.map(({ text }) => text).join('');
}

/** Reads the guides. @throws Error if a section does not exist */
export function readGuides(publicUrl: string): Guide[] {
  return PLANS.map(({ slug, title, summary, sources }) => {
    const body = sources
      .map(textOf)
      .join('\n')
      .replace(/^#+ .*\n/, '')
      .replaceAll('http://localhost:3000', publicUrl)
      .replaceAll('{PUBLIC_URL}', publicUrl);
    return { title, path: `/docs/${slug}`, summary, text: `# ${title}\n\n${body.trim()}\n` };
  });
}

const headingsOf = (text: string, level: string): string[] =>
  [...text.replace(CODE, '').matchAll(new RegExp(`^${level} (.*)$`, 'gm'))].map(([, heading]) => plainOf(heading!));

/** Where the files and headings of the project's documentation are on the site. */
function targetsOf(guides: readonly Guide[]): Map<string, string> {
  const targets = new Map([
    ['errors.md', '/docs/errors'],
    ['openapi.json', '/v1/openapi.json'],
    ['README.md', '/docs/quickstart'],
  ]);
  for (const [at, { path, text }] of guides.entries()) {
    const { sources } = PLANS[at]!;
    for (const { file, only } of sources) {
      const name = file.split('/').at(-1)!;
      if (!targets.has(name)) targets.set(name, only ? '/docs' : path);
      for (const heading of [...(only ?? []), ...headingsOf(text, '#{2,4}')]) {
        const anchor = anchorOf(heading);
        const isTop = only?.[0] === heading && sources[0]!.file === file;
        if (!targets.has(`${name}#${anchor}`)) targets.set(`${name}#${anchor}`, isTop ? path : `${path}#${anchor}`);
      }
    }
  }
  return targets;
}

/** Returns the function that makes the body of a guide. */
export function guidePages(guides: readonly Guide[], groups: readonly Group[]): (guide: Guide) => VNode {
  const targets = targetsOf(guides);
  return (guide) => {
    const at = guides.indexOf(guide);
    const own = PLANS[at]!.sources[0]!.file.split('/').at(-1)!;
    const resolve = (target: string): string | undefined => {
      if (/^https?:/.test(target)) return target;
      const [file = '', anchor] = target.split('#');
      const name = file.split('/').at(-1) || own;
      return targets.get(anchor ? `${name}#${anchor}` : name) ?? targets.get(name);
    };
    const headings = headingsOf(guide.text, '#{2,3}');
    const [before, after] = [guides[at - 1], guides[at + 1]];
    const [, title = '', body = ''] = /^(# .*)\n([\s\S]*)$/.exec(guide.text) ?? [];
    return documented(groups, guide.path, [
      trusted(rendered(title, resolve)),
      html`<p class="lead">${guide.summary}</p>`,
      headings.length > 2 && contentsOf(headings),
      PLANS[at]!.sources.some(({ file }) => file === API) && guide.text.includes('call $API') && shorthand,
      trusted(rendered(body, resolve)),
      html`<p class="quiet"><small>This page as <a href=${`${guide.path}.md`}>Markdown</a></small></p>`,
      html`<nav class="pager" aria-label="Further pages">
        ${before && html`<a href=${before.path}><small>Before</small>${before.title}</a>`}
        ${after && html`<a class="next" href=${after.path}><small>Next</small>${after.title}</a>`}
      </nav>`,
    ]);
  };
}

/** Where the commands of docs/use/api.md say what their shorthand means. */
const shorthand = html`<p class="quiet">The commands use <code>call</code>, <code>field</code> and <code>$API</code> of the <a href="/docs/requests#shorthand">shorthand</a>.</p>`;

const contentsOf = (headings: readonly string[]): VNode => html`
  <nav class="toc" aria-label="On this page">
    <h2>On this page</h2>
    <ul>${headings.map((heading) => html`<li><a href=${`#${anchorOf(heading)}`}>${heading}</a></li>`)}</ul>
  </nav>`;

/** The sections of a guide for the search. */
export function searchableSections({ title: of, path, summary, text }: Guide): Findable[] {
  return text.split(/^(?=#{1,3} )/m).map((section) => {
    const [, level, heading = ''] = /^(#+) (.*)/.exec(section) ?? [];
    const body = section
      .replace(/^#.*\n/, '')
      .replace(/^```.*$/gm, '')
      .replace(/\|[-|]+\|/g, '')
      .replaceAll('|', ' ');
    const title = plainOf(heading);
    if (level === '#') return { title, of: 'Guide', path, text: plainOf(`${summary} ${body}`) };
    return { title, of, path: `${path}#${anchorOf(title)}`, text: plainOf(body) };
  });
}
