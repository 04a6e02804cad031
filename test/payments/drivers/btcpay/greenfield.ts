/** Checks requests and answers against the API document of BTCPay Server (greenfield.json). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

// biome-ignore lint/suspicious/noExplicitAny: the test knows the shape of the document
type Document = any;

const document: Document = JSON.parse(readFileSync(join(import.meta.dirname, 'greenfield.json'), 'utf8'));

/** Parts of a schema forbid each other's members, so this moves the ban on unknown members to the whole. */
function open(schema: Document): Document {
  if (Array.isArray(schema)) return schema.map(open);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { additionalProperties, ...rest } = schema;
  const kept = additionalProperties === false ? rest : schema;
  return Object.fromEntries(Object.entries(kept).map(([key, value]) => [key, open(value)]));
}

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(open(document), 'greenfield');
const compiled = new Map<string, ValidateFunction>();

/** Returns the faults of a value, by the schema at a JSON pointer. */
export function problemsOf(pointer: string, value: unknown): string[] {
  const validate =
    compiled.get(pointer) ?? ajv.compile({ $ref: `greenfield#${pointer}`, unevaluatedProperties: false });
  compiled.set(pointer, validate);
  validate(value);
  return (validate.errors ?? []).map((error) => `${pointer} ${error.instancePath} ${error.message}`);
}

const escaped = (path: string) =>
  path.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D');

export interface Endpoint {
  id: string;
  problemsOfRequest(query: URLSearchParams, body: unknown): string[];
  problemsOfAnswer(value: unknown): string[];
}

/** Returns undefined if there is no such endpoint. */
export function endpointOf(method: string, pathname: string): Endpoint | undefined {
  const found = Object.entries<Document>(document.paths).find(([path]) =>
    new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
  );
  const operation = found?.[1][method.toLowerCase()];
  if (!found || !operation) return undefined;
  const place = `/paths/${escaped(found[0])}/${method.toLowerCase()}`;
  const known = (operation.parameters as Document[]).filter((one) => one.in === 'query').map(({ name }) => name);
  const content = 'content/application~1json/schema';
  return {
    id: operation.operationId,
    problemsOfRequest: (query, body) => [
      ...[...query.keys()].filter((name) => !known.includes(name)).map((name) => `${place} has no parameter ${name}`),
      ...(operation.requestBody ? problemsOf(`${place}/requestBody/${content}`, body) : []),
    ],
    problemsOfAnswer: (value) => problemsOf(`${place}/responses/200/${content}`, value),
  };
}
