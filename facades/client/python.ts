/**
 * `node facades/client/python.ts`: writes the types of the Python SDK, and its table of endpoints, from
 * docs/openapi.json.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClientOperation, type OpenApi, operationsOf } from './model.ts';
import { nameOf, type Schema } from './schema.ts';
import { readDocument } from './typescript.ts';

const FILE = join(import.meta.dirname, 'python/freehold/_api.py');

const HEADER = `"""The types and endpoints of the API. Made by facades/client/python.ts from the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, NamedTuple, Tuple, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Endpoint(NamedTuple):
    """How the SDK calls an operation."""

    method: str
    path: str
    query: Tuple[str, ...]
    has_body: bool
    is_keyed: bool
`;
/** The words of Python that are names of the API. The SDK takes them with an underscore. */
export const KEYWORDS: ReadonlySet<string> = new Set(['class', 'from', 'global', 'import', 'in', 'is', 'pass', 'with']);

/** Later versions of the service add values to answers. A caller knows what it sends. */
type Direction = 'sent' | 'received';

/** Returns the text of the generated file. It has the types that the operations need, and no others. */
export function pythonOf(document: OpenApi): string {
  const types = new Types(document);
  const operations = operationsOf(document);
  for (const { name, input, answer, isPage } of operations) {
    types.of({ ...input, description: `The arguments of ${name}.` }, 'sent', `${name}Arguments`);
    if (isPage) types.of(answer.properties!.data!.items!, 'received', `${name}Entry`);
    else types.of(answer, 'received', `${name}Answer`);
  }
  const endpoints = operations.map(endpointOf);
  return [HEADER, ...types.texts.values(), `ENDPOINTS: Dict[str, Endpoint] = {\n${endpoints.join('\n')}\n}\n`].join(
    '\n\n',
  );
}

const truth = (value: boolean) => (value ? 'True' : 'False');

function endpointOf({ name, method, path, query, hasBody, isKeyed }: ClientOperation): string {
  const names = query.map((one) => `"${one}", `).join('');
  return `    "${name}": Endpoint("${method}", "${path}", (${names.trimEnd()}), ${truth(hasBody)}, ${truth(isKeyed)}),`;
}

/** The types of Python that schemas need, by their names. */
class Types {
  readonly texts = new Map<string, string>();
  readonly #document: OpenApi;

  constructor(document: OpenApi) {
    this.#document = document;
  }

  /** @param name the name of the type, if the schema needs one of its own */
  of(schema: Schema, direction: Direction, name: string): string {
    const reference = nameOf(schema);
    if (reference) return this.#named(this.#document.components.schemas[reference]!, direction, reference);
    if (schema.anyOf && !schema.type) {
      const choices = [...new Set(schema.anyOf.map((one) => this.of(one, direction, name)))];
      return choices.length > 1 ? `Union[${choices.join(', ')}]` : choices[0]!;
    }
    if (schema.enum) {
      const values = `Literal[${schema.enum.map((value) => `"${value}"`).join(', ')}]`;
      return direction === 'sent' ? values : `Union[${values}, str]`;
    }
    if (schema.type === 'array') return `List[${this.of(schema.items ?? {}, direction, name)}]`;
    if (schema.type === 'object') return this.#object(schema, direction, name);
    return (
      { string: 'str', number: 'float', integer: 'int', boolean: 'bool', null: 'None' }[schema.type ?? ''] ?? 'Any'
    );
  }

  #object(schema: Schema, direction: Direction, name: string): string {
    const { properties, additionalProperties: others } = schema;
    if (properties) return this.#named(schema, direction, name);
    return `Dict[str, ${typeof others === 'object' ? this.of(others, direction, name) : 'Any'}]`;
  }

  #named({ properties = {}, required = [], description }: Schema, direction: Direction, name: string): string {
    if (this.texts.has(name)) return name;
    this.texts.set(name, '');
    const members = Object.entries(properties).map(([member, schema]) => {
      const type = this.of(schema, direction, `${name}${pascal(member)}`);
      return { member, schema, type: required.includes(member) ? type : `NotRequired[${type}]` };
    });
    // A type comes after those that it needs.
    this.texts.delete(name);
    // Python takes a word of its own as an argument only with an underscore. Answers need the right name.
    const isOwn = members.some(({ member }) => direction === 'received' && KEYWORDS.has(member));
    const lines = members.map(({ member, schema, type }) =>
      isOwn
        ? `        "${member}": '${type}',\n`
        : `    ${member}${KEYWORDS.has(member) ? '_' : ''}: ${type}\n${comment(schema.description)}`,
    );
    const body = `${comment(description)}${description && lines.length ? '\n' : ''}${lines.join('')}` || '    pass\n';
    const call = `${name} = TypedDict(\n    "${name}",\n    {\n${lines.join('')}    },\n)\n`;
    this.texts.set(name, isOwn ? call : `class ${name}(TypedDict):\n${body}`);
    return name;
  }
}

const pascal = (name: string): string => name.replace(/(^|_)(\w)/g, (_, _start, letter) => letter.toUpperCase());

function comment(text: string | undefined): string {
  const line = text?.replaceAll('\n', ' ').replaceAll('\\', '\\\\').replaceAll('"', "'");
  return line ? `    """${line}"""\n` : '';
}

if (import.meta.main) writeFileSync(FILE, pythonOf(readDocument()));
