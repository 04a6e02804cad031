/**
 * The schemas of results in tools/list. Models pay for the list at every step, so a schema has the names of members in its
 * description. Their types are in OpenAPI. Each shape stands once: other schemas have its title alone.
 */
import type { Tool } from '@modelcontextprotocol/server';
import { answerSchema, type JsonSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';

type OutputSchema = NonNullable<Tool['outputSchema']>;
type Members = Readonly<Record<string, JsonSchema>>;

/** The schemas of the results of tools, by their names. Errors match them, too: clients of 2025 require that. */
export function outputSchemasOf(operations: readonly Operation[]): ReadonlyMap<string, OutputSchema> {
  const shapes = new Map<string, Members>();
  const schemaOf = (operation: Operation): [string, OutputSchema] => {
    const answer = answerSchema(operation, (title, make) => ({ title, ...make() }));
    return [operation.tool!.name, { type: 'object', description: shapeOf(answer, shapes) }];
  };
  // The tools that show a thing come first, so that those that change it add only what they add.
  const isQuery = ({ kind }: Operation) => kind === 'query';
  const mutations = operations.filter((operation) => !isQuery(operation));
  return new Map([...operations.filter(isQuery), ...mutations].map(schemaOf));
}

/** `Server: hostname, failure (code, message)` at first, and `Server, refunded_usd` later. Empty: a value without parts. */
function shapeOf({ title, items, properties, anyOf }: JsonSchema, shapes: Map<string, Members>): string {
  if (anyOf) return distinct((anyOf as JsonSchema[]).map((variant) => shapeOf(variant, shapes))).join(' or ');
  if (items) return shapeOf(items as JsonSchema, shapes);
  if (!properties) return '';
  const members = properties as Members;
  const [known, shape] = largestWithin(members, shapes);
  const added = Object.entries(members).filter(([name]) => !(name in shape));
  if (typeof title === 'string' && added.length) shapes.set(title, members);
  const names = added.map(([name, schema]) => memberOf(name, schema, shapes)).join(', ');
  if (known) return names ? `${known}, ${names}` : known;
  return title ? `${title}: ${names}` : names;
}

function memberOf(name: string, schema: JsonSchema, shapes: Map<string, Members>): string {
  const shape = shapeOf(schema, shapes);
  return `${name}${schema.items ? '[]' : ''}${shape && ` (${shape})`}`;
}

const distinct = (shapes: string[]): string[] => [...new Set(shapes.filter(Boolean))];

/** The shape with the most members of those that the members include. */
function largestWithin(members: Members, shapes: ReadonlyMap<string, Members>): [string | undefined, Members] {
  const within = [...shapes].filter(([, shape]) => Object.keys(shape).every((name) => name in members));
  return within.sort(([, one], [, other]) => Object.keys(other).length - Object.keys(one).length)[0] ?? [undefined, {}];
}
