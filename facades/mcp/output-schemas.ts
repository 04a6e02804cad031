/**
 * The schemas of results in tools/list. Models pay for the list at every step, so the schemas leave out types and limits,
 * which OpenAPI has. Each shape stands once: a schema with a title alone has the shape of the first one with that title.
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
    return [operation.tool!.name, { type: 'object', ...lightened(answer, shapes) }];
  };
  // The tools that show a thing come first, so that those that change it add only what they add.
  const isQuery = ({ kind }: Operation) => kind === 'query';
  const mutations = operations.filter((operation) => !isQuery(operation));
  return new Map([...operations.filter(isQuery), ...mutations].map(schemaOf));
}

/** The names of a schema, without the members of a shape that an earlier schema has. */
function lightened({ title, items, properties, anyOf }: JsonSchema, shapes: Map<string, Members>): JsonSchema {
  if (anyOf) return eitherOf(anyOf as JsonSchema[], shapes);
  if (items) return listOf(lightened(items as JsonSchema, shapes));
  if (!properties) return {};
  const members = properties as Members;
  const [known, shape] = largestWithin(members, shapes);
  const added = Object.entries(members).filter(([name]) => !(name in shape));
  if (typeof title === 'string' && added.length) shapes.set(title, members);
  const shown = known ?? (title as string | undefined);
  const light = added.map(([name, schema]) => [name, lightened(schema, shapes)]);
  return { ...(shown && { title: shown }), ...(added.length && { properties: Object.fromEntries(light) }) };
}

const isEmpty = (schema: JsonSchema) => Object.keys(schema).length === 0;

const listOf = (items: JsonSchema): JsonSchema => (isEmpty(items) ? {} : { type: 'array', items });

function eitherOf(variants: JsonSchema[], shapes: Map<string, Members>): JsonSchema {
  const [only, ...others] = variants.map((variant) => lightened(variant, shapes)).filter((schema) => !isEmpty(schema));
  return others.length ? { anyOf: [only, ...others] } : (only ?? {});
}

/** The shape with the most members of those that the members include. */
function largestWithin(members: Members, shapes: ReadonlyMap<string, Members>): [string | undefined, Members] {
  const within = [...shapes].filter(([, shape]) => Object.keys(shape).every((name) => name in members));
  return within.sort(([, one], [, other]) => Object.keys(other).length - Object.keys(one).length)[0] ?? [undefined, {}];
}
