/** The search of the documentation. The service answers it, so that it needs no script. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { documented, type Group, type Page, searchForm } from './frame.ts';

/** A part of a page that the search finds. */
export interface Findable {
  title: string;
  /** The whole of this part: a guide, a noun, or the errors. */
  of: string;
  path: string;
  text: string;
  /** Further words by which people look for it. */
  words?: string;
}

const QUERY_MAX = 100;
const WORDS_MAX = 8;
const RESULTS_MAX = 20;
/** Characters around the first found word. */
const AROUND = { before: 60, after: 150 };
/** The weights of a word, by the place of its finding. `whole` adds to `title` for a whole word. */
const WEIGHTS = { title: 6, whole: 6, words: 4, of: 2, text: 1 };

interface Prepared extends Findable {
  inTitle: string;
  wordsOfTitle: ReadonlySet<string>;
  inWords: string;
  inOf: string;
  inText: string;
}

export type Search = (query: string) => Findable[];

/** Returns the search in the given parts. A part must have each word of a query, or the beginning of a word of it. */
export function searchIn(parts: readonly Findable[]): Search {
  const prepared = parts.map(
    (part): Prepared => ({
      ...part,
      inTitle: lower(part.title),
      wordsOfTitle: new Set(lower(part.title).split(/[^\p{L}\p{N}_.-]+/u)),
      inWords: lower(part.words ?? ''),
      inOf: lower(part.of),
      inText: lower(part.text),
    }),
  );
  return (query) => {
    const words = wordsOf(query);
    if (!words.length) return [];
    return prepared
      .map((part) => ({ part, score: scoreOf(part, words) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, RESULTS_MAX)
      .map(({ part }) => part);
  };
}

const lower = (text: string): string => ` ${text.toLowerCase()}`;
const wordsOf = (query: string): string[] =>
  (
    query
      .slice(0, QUERY_MAX)
      .toLowerCase()
      .match(/[\p{L}\p{N}][\p{L}\p{N}_.-]*/gu) ?? []
  ).slice(0, WORDS_MAX);

/** 0 if a word is absent. */
function scoreOf({ inTitle, wordsOfTitle, inWords, inOf, inText }: Prepared, words: readonly string[]): number {
  let score = 0;
  for (const word of words) {
    const found =
      (inTitle.includes(word) ? WEIGHTS.title : 0) +
      (wordsOfTitle.has(word) ? WEIGHTS.whole : 0) +
      (inWords.includes(word) ? WEIGHTS.words : 0) +
      (inOf.includes(word) ? WEIGHTS.of : 0) +
      (inText.includes(word) ? WEIGHTS.text : 0);
    if (!found) return 0;
    score += found;
  }
  return score;
}

/** The text around the first found word, from word to word, with the words of the query marked. */
function excerptOf(text: string, words: readonly string[]): (string | VNode)[] {
  const low = text.toLowerCase();
  const found = words.map((word) => low.indexOf(word)).filter((at) => at >= 0);
  const first = found.length ? Math.min(...found) : 0;
  const from = first <= AROUND.before ? 0 : text.indexOf(' ', first - AROUND.before) + 1;
  const end = first + AROUND.after;
  const to = end >= text.length ? text.length : text.lastIndexOf(' ', end);
  const pattern = new RegExp(`(${words.map((word) => word.replaceAll('.', '\\.')).join('|')})`, 'i');
  const marked = text
    .slice(from, to)
    .split(pattern)
    .map((part, at) => (at % 2 ? html`<mark>${part}</mark>` : part));
  return [from ? '… ' : '', ...marked, to < text.length ? ' …' : ''];
}

export function searchPage(search: Search, query: string, groups: readonly Group[]): Page {
  const asked = query.slice(0, QUERY_MAX).trim();
  const found = search(asked);
  const words = wordsOf(asked);
  return {
    path: '/docs/search',
    title: asked ? `Search for “${asked}”` : 'Search',
    description: 'Search the documentation.',
    body: documented(groups, '/docs/search', [
      html`<h1>Search</h1>`,
      searchForm(asked, 'Search guides, operations and errors'),
      asked &&
        html`<p class="quiet" role="status">${found.length || 'No'} ${found.length === 1 ? 'result' : 'results'} for “${asked}”</p>`,
      asked &&
        !found.length &&
        html`<p>Try fewer words, or look at <a href="/docs">all guides</a> and <a href="/docs/api">all operations</a>.</p>`,
      html`<ul class="results">${found.map(
        ({ title, of, path, text }) =>
          html`<li><small class="quiet">${of}</small><br /><a href=${path}>${title}</a><p class="quiet">${excerptOf(text, words)}</p></li>`,
      )}</ul>`,
    ]),
  };
}
