/** The catalogue of errors: as Markdown for docs/use/errors.md, and as a page with an anchor for each code. */
import { STATUS_CODES } from 'node:http';
import { html } from 'htm/preact';
import { ERRORS } from '../../schema/index.ts';
import type { Terms } from '../compile/terms.ts';
import { inlined } from './fields.ts';
import { documented, type Group, type Page } from './frame.ts';

export interface ErrorRow {
  code: string;
  status: number;
  detail: string;
  /** Whether the same request may succeed later. */
  retryable: 'yes' | 'no';
}

export const errorRows = (terms: Terms): ErrorRow[] =>
  Object.entries(ERRORS).map(([code, [status, detail, retryable]]: [string, readonly [number, string, string?]]) => ({
    code,
    status,
    detail: terms(detail),
    retryable: retryable ? 'yes' : 'no',
  }));

const INTRODUCTION = [
  'Every error is one flat object with the members of RFC 9457: `type`, `title`, `status` and `detail`. It also has `code`,',
  '`request_id` and `retryable`. Where they help, it has `errors[]` with `field`, `code` and `message`, `retry_after` in seconds,',
  '`required_scope`, `available_regions`, `required_usd` and `balance_usd`. Decide by `code`. New versions add codes, and never',
  'change one.',
];

/** The catalogue as Markdown, for docs/use/errors.md. */
export const errorsMarkdown = (terms: Terms): string =>
  [
    '# Errors',
    '',
    ...INTRODUCTION,
    '',
    '| code | status | retryable | meaning |',
    '|---|---|---|---|',
    ...errorRows(terms).map(
      ({ code, status, retryable, detail }) => `| \`${code}\` | ${status} | ${retryable} | ${detail} |`,
    ),
    '',
  ].join('\n');

/** The page to which the `type` of every error leads. */
export function errorsPage(terms: Terms, groups: readonly Group[]): Page {
  const byStatus = [...Map.groupBy(errorRows(terms), ({ status }) => status)].sort(([a], [b]) => a - b);
  return {
    path: '/docs/errors',
    title: 'Errors',
    description: 'Every error code, with its status and its meaning.',
    body: documented(groups, '/docs/errors', [
      html`<h1>Errors</h1>`,
      html`<p>${inlined(INTRODUCTION.join(' '))}</p>`,
      byStatus.map(
        ([status, rows]) => html`
          <h2 id=${`status-${status}`}>${status} ${STATUS_CODES[status]}</h2>
          <div class="scroll" role="group" aria-label=${`Errors with the status ${status}`} tabindex="0"><table>
            <thead><tr><th scope="col">Code</th><th scope="col">Meaning</th><th scope="col">Try again</th></tr></thead>
            <tbody>${rows.map(
              ({ code, detail, retryable }) => html`<tr id=${code}>
                <th scope="row"><a href=${`#${code}`}><code>${code}</code></a></th><td>${detail}</td><td>${retryable}</td>
              </tr>`,
            )}</tbody>
          </table></div>`,
      ),
    ]),
  };
}
