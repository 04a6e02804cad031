/** What the OpenAPI document says of the whole. */

export const ABOUT = `VPS and dedicated servers without identity verification, paid in cryptocurrency.

**Start**: \`POST /v1/auth/register\` makes an account and answers an access token; programs make one for themselves by
\`POST /v1/oauth/register\` (RFC 7591). Send \`Authorization: Bearer <access token or API key>\`. Nothing has to be paid
before something is ordered.

**Scopes**: \`read\`, \`servers\`, \`billing\` and \`full\`. Each operation has its own in \`x-scope\`; \`full\` has
them all, and each of the others has \`read\`. \`public\` needs no credential. \`x-availability\` is LIVE or PLANNED; what
is planned answers 404 \`endpoint_planned\`.

**Errors** are one flat object (RFC 9457). Decide by \`code\`; all codes are at \`/docs/errors\`. \`retryable\` says whether
the same request may succeed later.

**Again**: send \`Idempotency-Key\` with what changes something. The same key and request are answered as before, with
\`Idempotency-Replayed: true\`, and take effect once.

**Lists** are \`{data, next_cursor, has_more}\`, newest first: send \`next_cursor\` as \`cursor\` to get the next page.

**Limits** are in \`RateLimit\` and \`RateLimit-Policy\`; after 429 wait for \`Retry-After\` seconds.

**Values**: times are RFC 3339 in UTC, money is a number of US dollars. Fields, values of enumerations and events are
added without notice: ignore what you do not know.`;

export const TAGS: Readonly<Record<string, string>> = {
  account: 'The account, what it has used, and its audit log.',
  agents: 'The public directory of agents.',
  auth: 'Registering, logging in, sessions, the second factor, passwords and API keys.',
  billing: 'The balance, coins, bonuses and top-ups.',
  catalog: 'What can be ordered: tiers, bastions (regions) and images. Public.',
  oauth: 'OAuth 2.1 for programs: registration, tokens, revocation and introspection.',
  planned: 'Announced, and not available yet.',
  servers: 'Ordering, reading, changing and deleting servers.',
  'ssh-keys': 'Public keys that are put on servers.',
  transparency: 'The warrant canary, the network and the status of the service. Public.',
  webhooks: 'Calls of yours at every change, signed as Standard Webhooks has it.',
};
