/**
 * Names the next step of an error or a description in the caller's terms. A sentence of the domain has the name of an operation, such as
 * {CreateTopup}. A facade shows the operation as its callers know it.
 */
import type { Operation } from './operation.ts';

/** Puts a facade's terms into a sentence. */
export type Terms = (sentence: string) => string;

const OPERATION = /\{([A-Z]\w*)\}/g;

const termsOf = (operations: readonly Operation[], shown: (operation: Operation) => string): Terms => {
  const byName = new Map(operations.map((operation) => [operation.name, shown(operation)]));
  return (sentence) => sentence.replaceAll(OPERATION, (_, name) => byName.get(name) ?? name);
};

/** A copy of a document with a facade's terms in all its descriptions. */
export const worded = <Document>(document: Document, terms: Terms): Document =>
  JSON.parse(JSON.stringify(document), (name, value) =>
    name === 'description' && typeof value === 'string' ? terms(value) : value,
  );

const endpointOf = ({ name, http }: Operation): string => (http ? `${http.method} ${http.path}` : name);

/** Shows operations as endpoints: `POST /v1/billing/topups`. */
export const restTerms = (operations: readonly Operation[]): Terms => termsOf(operations, endpointOf);

/** Shows operations as tools: `create_topup`. One without a tool is the tool of the same field, or else an endpoint. */
export const toolTerms = (operations: readonly Operation[]): Terms =>
  termsOf(operations, (operation) => {
    const [field] = operation.answer.path;
    const alike = operations.find(({ tool, answer }) => tool && answer.path[0] === field);
    return operation.tool?.name ?? alike?.tool?.name ?? endpointOf(operation);
  });

/** Shows operations by their names. */
export const plainTerms: Terms = termsOf([], () => '');
