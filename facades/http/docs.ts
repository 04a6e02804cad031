/**
 * The public documentation: the OpenAPI document as a page at /docs, and the catalogue of errors at /docs/errors. The `type`
 * of every error links to the catalogue. The pages load nothing from other hosts.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { ERRORS } from '../../schema/index.ts';
import type { Terms } from '../compile/terms.ts';
import type { AdmitPublic } from '../rate-limit/admission.ts';

const rowsOf = (terms: Terms) =>
  Object.entries(ERRORS).map(([code, [status, detail, retryable]]: [string, readonly [number, string, string?]]) => ({
    code,
    status,
    detail: terms(detail),
    retryable: retryable ? 'yes' : 'no',
  }));

/** The catalogue as Markdown, for docs/use/errors.md. */
export const errorsMarkdown = (terms: Terms): string =>
  [
    '# Errors',
    '',
    'Every error is one flat object with the members of RFC 9457: `type`, `title`, `status` and `detail`. It also has `code`,',
    '`request_id` and `retryable`. Where they help, it has `errors[]` with `field`, `code` and `message`, `retry_after` in seconds,',
    '`required_scope`, `available_regions`, `required_usd` and `balance_usd`. Decide by `code`. New versions add codes, and never',
    'change one.',
    '',
    '| code | status | retryable | meaning |',
    '|---|---|---|---|',
    ...rowsOf(terms).map(
      ({ code, status, retryable, detail }) => `| \`${code}\` | ${status} | ${retryable} | ${detail} |`,
    ),
    '',
  ].join('\n');

const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const errorsPage = (terms: Terms): string => `<!doctype html><html lang="en"><meta charset="utf-8"><title>Errors</title>
<h1>Errors</h1><p>Let your program decide by the code. New versions add codes, and never change one.</p>
<table><thead><tr><th>code<th>status<th>retryable<th>meaning<tbody>
${rowsOf(terms)
  .map(
    ({ code, status, retryable, detail }) =>
      `<tr id="${code}"><td><code>${code}</code><td>${status}<td>${retryable}<td>${escaped(detail)}`,
  )
  .join('\n')}
</table></html>
`;

const REFERENCE = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Freehold API</title><link rel="icon" href="/docs/icon.svg"><link rel="stylesheet" href="/docs/swagger-ui.css"><div id="reference"></div>
<script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></html>
`;
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M1 7V4l3-3 3 3v3z" fill="#264"/></svg>`;
const START = `SwaggerUIBundle({ url: '/v1/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null });
`;
/** Allows scripts of this service only. Swagger UI needs inline styles and inline images. */
const REFERENCE_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'";

export function docs(app: FastifyInstance, onRequest: AdmitPublic, terms: Terms): void {
  const page = (path: string, type: string, content: string | Buffer, csp?: string) =>
    app.get(path, { onRequest }, (_request, reply) => {
      if (csp) reply.header('content-security-policy', csp);
      return reply.type(`${type}; charset=utf-8`).header('cache-control', 'public, max-age=3600').send(content);
    });
  const renderer = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const file = (name: string) => readFileSync(join(renderer, name));
  page('/docs', 'text/html', REFERENCE, REFERENCE_CSP);
  page('/docs/icon.svg', 'image/svg+xml', ICON);
  page('/docs/start.js', 'text/javascript', START);
  page('/docs/swagger-ui.css', 'text/css', file('swagger-ui.css'));
  page('/docs/swagger-ui-bundle.js', 'text/javascript', file('swagger-ui-bundle.js'));
  page('/docs/errors', 'text/html', errorsPage(terms));
}
