/** The introduction of the OpenAPI document, and the descriptions of its tags. */
import type { Operation } from '../compile/operation.ts';

const ABOUT = `VPS and dedicated servers without identity verification, paid in cryptocurrency.

**Start**: \`POST /v1/auth/register\` creates an account and returns an access token. Programs can register an account with
\`POST /v1/oauth/register\` (RFC 7591). Send \`Authorization: Bearer <access token or API key>\`. You pay nothing before your
first order.

**Scopes**: \`read\`, \`servers\`, \`billing\` and \`full\`. Each operation names its scope in \`x-scope\`. \`full\` includes
all scopes, and the others include \`read\`. A \`public\` operation needs no credential. \`x-availability\` is LIVE or
PLANNED. A planned operation answers 404 \`endpoint_planned\`.

**Errors** are one flat object (RFC 9457). Let your program decide by \`code\`. The page \`/docs/errors\` lists all codes.
\`retryable\` says whether the same request may succeed later.

**Retries**: send \`Idempotency-Key\` with every request that changes something. A repeated request with the same key has no
further effect. It returns the first answer, with \`Idempotency-Replayed: true\`.

**Lists** are \`{data, next_cursor, has_more}\`, newest first. Send \`next_cursor\` as \`cursor\` to get the next page.

**Rate limits** are in \`RateLimit\` and \`RateLimit-Policy\`. After 429, wait for \`Retry-After\` seconds.

**Values**: times are RFC 3339 in UTC, and money is a number of US dollars. New fields, enum values and events may appear at any
time, so ignore unknown ones.`;

/** The introduction, with a list of the endpoints beside the table of the specification. */
export function aboutOf(operations: readonly Operation[]): string {
  const extensions = operations.flatMap(({ http }) => (http?.extension ? [`- \`${http.method} ${http.path}\``] : []));
  if (!extensions.length) return ABOUT;
  return [
    `${ABOUT}\n\n**Extensions** have \`x-extension\`. The specification of the service does not list them:\n`,
    ...extensions,
  ].join('\n');
}

export const TAGS: Readonly<Record<string, string>> = {
  account: 'The account, its usage, and its audit log.',
  agents: 'The public directory of agents.',
  auth: 'Registration, login, sessions, two-factor authentication, passwords and API keys.',
  billing: 'The balance, coins, bonuses and top-ups.',
  catalog: 'Tiers, bastions (regions) and images that you can order. Public.',
  messages: 'The channel between the operator and the account. The service sends no mail.',
  oauth: 'OAuth 2.1 for programs: registration, tokens, revocation and introspection.',
  servers: 'Order, read, change and delete servers.',
  'ssh-keys': 'Public keys that the service installs on servers.',
  transparency: 'The warrant canary, the network and the status of the service. Public.',
  webhooks: 'Requests to your URL at every change, signed as Standard Webhooks specifies.',
};
