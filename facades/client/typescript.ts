/**
 * `node facades/client/typescript.ts`: writes the types of the TypeScript SDK, and its table of endpoints, from
 * docs/openapi.json. openapi-typescript does not work with TypeScript 7.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClientOperation, type OpenApi, operationsOf } from './model.ts';
import { nameOf, type Schema } from './schema.ts';

const DOCUMENT = join(import.meta.dirname, '../../docs/openapi.json');
const FILE = join(import.meta.dirname, 'src/api.ts');

const HEADER = `/** The types and endpoints of the API. Made by facades/client/typescript.ts from the OpenAPI document. */

/** A part of a list. \`next_cursor\` continues it. */
export interface Page<T> {
  data: T[];
  next_cursor: string | null;
  has_more: boolean;
}
`;

/** Later versions of the service add values to answers. A caller knows what it sends. */
type Direction = 'sent' | 'received';

/** Returns the text of the generated file. */
export function typescriptOf(document: OpenApi): string {
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) => {
    const direction = name.endsWith('Input') ? 'sent' : 'received';
    return `${comment(schema.description)}export type ${name} = ${typeOf(schema, direction)};\n`;
  });
  const operations = operationsOf(document);
  const types = operations.map(
    (one) =>
      `${comment(one.summary, '  ')}  ${one.name}: { input: ${typeOf(one.input, 'sent', '  ')}; answer: ${answerOf(one)} };`,
  );
  return [
    HEADER,
    ...schemas,
    `/** The input and the answer of each operation. */\nexport interface Operations {\n${types.join('\n')}\n}\n`,
    `/** How the SDK calls each operation. */\nexport const ENDPOINTS = {\n${operations.map(endpointOf).join('\n')}\n} as const;\n`,
  ].join('\n');
}

const endpointOf = ({ name, method, path, query, hasBody, isKeyed }: ClientOperation) =>
  `  ${name}: { method: '${method}', path: '${path}', query: ${JSON.stringify(query)}, hasBody: ${hasBody}, isKeyed: ${isKeyed} },`;

function answerOf({ isPage, answer }: ClientOperation): string {
  const isPlain = isPage && Object.keys(answer.properties!).length === 3;
  return isPlain
    ? `Page<${typeOf(answer.properties!.data!.items!, 'received', '  ')}>`
    : typeOf(answer, 'received', '  ');
}

const comment = (text: string | undefined, indent = '') =>
  text ? `${indent}/** ${text.replaceAll('*/', '* /').replaceAll('\n', ' ')} */\n` : '';

function typeOf(schema: Schema, direction: Direction, indent = ''): string {
  const reference = nameOf(schema);
  if (reference) return reference;
  if (schema.anyOf && !schema.type)
    return [...new Set(schema.anyOf.map((one) => typeOf(one, direction, indent)))].join(' | ');
  if (schema.enum) {
    const values = schema.enum.map((value) => `'${value}'`).join(' | ');
    return direction === 'sent' ? values : `${values} | (string & {})`;
  }
  if (schema.type === 'array') return `Array<${typeOf(schema.items ?? {}, direction, indent)}>`;
  if (schema.type === 'object') return objectOf(schema, direction, indent);
  if (schema.type === 'integer') return 'number';
  return schema.type ?? 'unknown';
}

function objectOf(schema: Schema, direction: Direction, indent: string): string {
  const { properties, required = [], additionalProperties: others } = schema;
  if (!properties)
    return `Record<string, ${typeof others === 'object' ? typeOf(others, direction, indent) : 'unknown'}>`;
  const inner = `${indent}  `;
  const members = Object.entries(properties).map(
    ([name, one]) =>
      `${comment(one.description, inner)}${inner}${name}${required.includes(name) ? '' : '?'}: ${typeOf(one, direction, inner)};\n`,
  );
  return members.length ? `{\n${members.join('')}${indent}}` : 'Record<string, never>';
}

export const readDocument = (): OpenApi => JSON.parse(readFileSync(DOCUMENT, 'utf8'));

if (import.meta.main) writeFileSync(FILE, typescriptOf(readDocument()));
