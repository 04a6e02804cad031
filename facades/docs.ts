/** What the outside reads about errors: the catalogue at /docs/errors, to which the `type` of every error leads. */
import type { FastifyInstance } from 'fastify';
import { ERRORS } from '../schema/index.ts';

const rows = Object.entries(ERRORS).map(
  ([code, [status, detail, retryable]]: [string, readonly [number, string, string?]]) => ({
    code,
    status,
    detail,
    retryable: retryable ? 'yes' : 'no',
  }),
);

/** The catalogue as Markdown, for docs/errors.md. */
export const errorsMarkdown = (): string =>
  [
    '# Errors',
    '',
    'Every error is one flat object: the members of RFC 9457 (`type`, `title`, `status`, `detail`), and `code`,',
    '`request_id` and `retryable`; where they help, `errors[]` with `field`, `code` and `message`, `retry_after` in seconds,',
    '`required_scope`, `available_regions`, `required_usd` and `balance_usd`. Steer by `code`. Codes are added, never changed.',
    '',
    '| code | status | retryable | meaning |',
    '|---|---|---|---|',
    ...rows.map(({ code, status, retryable, detail }) => `| \`${code}\` | ${status} | ${retryable} | ${detail} |`),
    '',
  ].join('\n');

const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Errors</title>
<h1>Errors</h1><p>Steer by the code. Codes are added, never changed.</p>
<table><thead><tr><th>code<th>status<th>retryable<th>meaning<tbody>
${rows.map(({ code, status, retryable, detail }) => `<tr id="${code}"><td><code>${code}</code><td>${status}<td>${retryable}<td>${escaped(detail)}`).join('\n')}
</table></html>
`;

export function docs(app: FastifyInstance): void {
  app.get('/docs/errors', (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('cache-control', 'public, max-age=60').send(PAGE),
  );
}
