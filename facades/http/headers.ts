/** The headers of every response, and those of a CORS preflight. Any origin may call, because the API has no cookies. */
import type { HTTPMethods } from 'fastify';
import type { Operation } from '../compile/operation.ts';
import { OAUTH_PATHS } from './oauth.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';
export const PROBLEM_TYPE = 'application/problem+json';

export const API_HEADERS: Readonly<Record<string, string>> = {
  'content-type': JSON_TYPE,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'access-control-allow-origin': '*',
  'access-control-expose-headers': '*',
};

/** Allows nothing but styles and images of this service, and its search form. */
export const PAGE_CSP =
  "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** Lets browsers send any header. `*` does not include Authorization. */
export const preflightHeaders = (allow: string): Record<string, string> => ({
  allow,
  'access-control-allow-methods': allow,
  'access-control-allow-headers': 'Authorization, *',
  'access-control-max-age': '86400',
});

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const satisfies HTTPMethods[];

/** Every path with its methods, and the methods that it lacks. */
export function methodsOf(operations: readonly Operation[]) {
  const paths = new Map<string, { url: string; has: Set<string> }>([
    ['/v1/openapi.json', { url: '/v1/openapi.json', has: new Set(['GET']) }],
    ...['/mcp', '/mcp/secure'].map((url) => [url, { url, has: new Set(['GET', 'POST', 'DELETE']) }] as const),
    ...OAUTH_PATHS.map(([url, has]) => [url, { url, has: new Set(has) }] as const),
  ]);
  for (const { http } of operations) {
    if (!http) continue;
    const key = http.path.replace(/\{\w+\}/g, '{}');
    const path = paths.get(key) ?? { url: http.path.replace(/\{(\w+)\}/g, ':$1'), has: new Set() };
    path.has.add(http.method);
    paths.set(key, path);
  }
  return [...paths.values()].map(({ url, has }) => {
    if (has.has('GET')) has.add('HEAD');
    const methods = METHODS.filter((method) => has.has(method));
    return { url, methods, others: METHODS.filter((method) => !has.has(method)) };
  });
}
