/** The public server over the sample schema, with documents of its own. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Operation } from '../../facades/compile/operation.ts';
import { readOperations } from '../../facades/compile/read.ts';
import type { Answered } from '../../facades/compile/run.ts';
import { type PublicOptions, publicServer } from '../../facades/http/listener.ts';
import { ApiError, type RequiredScope, type Viewer } from '../../schema/index.ts';
import { atEnd } from '../setup/end.ts';
import { schema } from './sample-schema.ts';

export const DOCUMENTS = `
"A thing, as its callers see it."
fragment Thing on Thing { thingId color otherColors labels priceUsd madeAt weight parts { ...Part } }
"A part."
fragment Part on Part { name color weight }

"Shows one thing."
query GetThing($thingId: ID!) @http(method: GET, path: "/v1/things/{thing_id}") @tool(name: "get_thing") {
  thing(thingId: $thingId) { ...Thing }
}
"Lists things. Newest first."
query ListThings($limit: PageLimit, $color: [Color!], $heavy: Boolean)
@http(method: GET, path: "/v1/things") @tool(name: "list_things") {
  things(limit: $limit, color: $color, heavy: $heavy) { data { ...Thing } nextCursor hasMore }
}
"Orders a thing."
mutation OrderThing($input: OrderThingInput!) @http(method: POST, path: "/v1/things") @tool(name: "order_thing") {
  orderThing(input: $input) { thing @spread { ...Thing } part @spread { lid: name } plaintext }
}
"Changes a thing."
mutation ChangeThing($thingId: ID!, $input: InnerInput!)
@http(method: PATCH, path: "/v1/things/{thing_id}") @tool(name: "change_thing", idempotent: true) {
  changeThing(thingId: $thingId, input: $input) { ...Thing }
}
"Deletes a thing."
mutation DeleteThing($thingId: ID!) @http(method: DELETE, path: "/v1/things/{thing_id}") @tool(name: "delete_thing") {
  deleteThing(thingId: $thingId) { ...Thing }
}
"Returns its arguments and the caller."
mutation Echo(
  $input: OrderThingInput
  $mode: Color @header(name: "X-Mode")
  "Makes the request safe to repeat."
  $key: KeyName @header(name: "Idempotency-Key")
) @http(method: POST, path: "/v1/echo") @tool(name: "echo") {
  echo(input: $input, mode: $mode, key: $key) { args caller }
}
"Shows a thing or a part."
query GetSomething($thingId: ID!)
@http(method: GET, path: "/v1/something/{thing_id}", maxAgeSeconds: 60) @tool(name: "get_something") {
  something(thingId: $thingId) { ...Thing ... on Part { name color weight } }
}
"Lists the parts."
query ListParts @http(method: GET, path: "/v1/parts") @tool(name: "list_parts", title: "All parts") { parts { ...Part } }
"Lists the parts, and returns a number."
query Both @http(method: GET, path: "/v1/both") { parts { ...Part } the_number: number colors }
"Returns a number."
query Numbers @http(method: GET, path: "/v1/number") { number }
"Throws an error that is not in the catalogue."
query Broken @http(method: GET, path: "/v1/broken") @tool(name: "broken") { broken { ...Part } }
"Throws an error of the catalogue."
query Refused($code: String!) @http(method: GET, path: "/v1/refused/{code}") @tool(name: "refused") {
  refused(code: $code) { ...Part }
}
"Waits until the test ends it."
query Slow @http(method: GET, path: "/v1/slow") { slow { ...Part } }
"Will order two things."
mutation OrderTwo($input: OrderThingInput!) @http(method: POST, path: "/v1/pairs", status: PLANNED) {
  orderThing(input: $input) { thing { ...Thing } }
}
`;

/** Writes documents to a folder, and deletes the folder when the test ends. */
export function folderOf(documents: Record<string, string>, onEnd: (end: () => void) => void = atEnd): string {
  const folder = mkdtempSync(join(tmpdir(), 'freehold-documents-'));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(documents)) writeFileSync(join(folder, name), text);
  return folder;
}

export const viewer = (...scopes: RequiredScope[]): Viewer => ({
  accountId: 'acct_test',
  kind: 'api_key',
  credentialId: 'key_test',
  name: null,
  scopes: new Set<RequiredScope>(['public', ...scopes]),
  expiresAt: null,
});

/** `Bearer read servers` is a viewer with these scopes. */
export async function authenticate(authorization: string | undefined): Promise<Viewer | null> {
  if (authorization === undefined) return null;
  const scopes = /^Bearer ((public|read|servers|billing|full)( (read|servers|billing|full))*)$/.exec(
    authorization,
  )?.[1];
  if (!scopes) throw new ApiError('invalid_credential');
  return viewer(...(scopes.split(' ') as RequiredScope[]));
}

export interface SampleApi {
  app: FastifyInstance;
  operations: readonly Operation[];
  /** The logged errors. */
  errors: Readonly<Record<string, unknown>>[];
  /** The log of responses. */
  answers: Answered[];
}

let requests = 0;

/** Watches a credential that never ends. */
export const neverEnds = () => ({ checked: Promise.resolve(), forget: () => {} });

/** Opens the public server over the sample schema. It closes when the given hook runs. */
export async function openSampleApi(
  onEnd: (end: () => void) => void = atEnd,
  more: Partial<PublicOptions> = {},
): Promise<SampleApi> {
  const operations = readOperations(schema, folderOf({ 'shop.graphql': DOCUMENTS }, onEnd));
  const [errors, answers]: [SampleApi['errors'], SampleApi['answers']] = [[], []];
  const app = await publicServer({
    operations,
    authenticate,
    contextOf: (context) => ({ db: {}, ...context }) as never,
    publicUrl: 'http://localhost:3000',
    mcpSecrets: [Buffer.alloc(32, 7)],
    onCredentialEnd: neverEnds,
    newRequestId: () => `req_${++requests}`,
    onError: (line) => errors.push(line),
    onAnswer: (line) => answers.push(line),
    ...more,
  });
  onEnd(() => app.close());
  return { app, operations, errors, answers };
}
