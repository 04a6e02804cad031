/** What a document has to keep to beyond GraphQL's own rules. Each problem points at its place. */
import {
  type ASTNode,
  type FieldNode,
  GraphQLError,
  getNamedType,
  getNullableType,
  isCompositeType,
  isListType,
  visit,
} from 'graphql';
import { pathNames, snake } from './names.ts';
import type { Operation } from './operation.ts';
import { type Parameter, readsCredential } from './parameters.ts';
import { hasDirective } from './selection.ts';

const PATH = /^(\/[a-z0-9._-]+|\/\{[a-z][a-z0-9_]*\})+$/;
const RESOURCE = /^freehold:\/\/[a-z]+(\/([a-z_-]+|\{[a-z][a-z0-9_]*\}))*$/;
const WIRE_NAME = /^[a-z][a-z0-9_]*$/;

type Say = (message: string, node?: ASTNode) => void;

export function problemsOf(operation: Operation): GraphQLError[] {
  const problems: GraphQLError[] = [];
  const say: Say = (message, node = operation.definition.name!) => {
    problems.push(new GraphQLError(message, { nodes: node }));
  };
  const { name, description, http, tool, resource } = operation;
  if (!description) say(`${name} lacks a description.`);
  if (!http && !tool) say(`${name} has neither @http nor @tool, so that nobody can reach it.`);
  checkNames(operation, say);
  for (const parameter of operation.parameters) checkParameter(parameter, say);
  if (http) checkHttp(operation, say);
  if (tool) checkTool(operation, say);
  if (resource) checkResource(operation, say);
  return problems;
}

/** Names on the wire, and `@answer` in its place. */
function checkNames({ document, answer }: Operation, say: Say): void {
  visit(document, {
    Field(node: FieldNode) {
      if (!WIRE_NAME.test(node.alias!.value)) say(`The name ${node.alias!.value} is not snake_case.`, node);
      if (hasDirective(node, 'answer') && node !== answer.node)
        say('@answer needs a field that stands alone, as do the fields around it, outside of lists.', node);
    },
  });
}

function checkParameter({ name, type, in: place, header, required, description, node }: Parameter, say: Say): void {
  if (!description) say(`$${name} lacks a description, and so does what it feeds.`, node);
  if (place !== 'path') return;
  if (!required) say(`$${name} stands in the path, and so must be required.`, node);
  if (header !== undefined) say(`$${name} stands in the path, and cannot be a header too.`, node);
  if (isListType(getNullableType(type))) say(`$${name} stands in the path, and cannot be a list.`, node);
}

function checkHttp({ name, kind, http, scopes, parameters, input }: Operation, say: Say): void {
  const { method, path } = http!;
  if (!PATH.test(path)) say(`The path ${path} of ${name} is not made of lower-case segments and {parameters}.`);
  for (const inPath of pathNames(path)) {
    if (!parameters.some((parameter) => parameter.name === inPath)) say(`${name} has no variable for {${inPath}}.`);
  }
  if (method === 'GET' && input) say(`${name} is a GET, and cannot have an input object.`);
  if (method === 'GET' && kind === 'mutation') say(`${name} is a GET, and cannot be a mutation.`);
  const headers = parameters.flatMap(({ header }) => (header ? [header.toLowerCase()] : []));
  if (new Set(headers).size < headers.length) say(`${name} reads a header twice.`);
  if (parameters.some(readsCredential) && scopes.length)
    say(`${name} reads the credential itself, and so must be public.`);
}

function checkTool({ name, http, tool, answer, parameters, input }: Operation, say: Say): void {
  if (http?.status === 'PLANNED') say(`${name} is planned, and so can be no tool yet.`);
  if (http && http.style !== 'PLAIN') say(`${name} speaks as OAuth does, and so can be no tool.`);
  if (!answer.page && !isCompositeType(getNamedType(answer.type)))
    say(`${name} is a tool, and so must answer an object or a list.`);
  const fields = Object.keys(input?.type.getFields() ?? {}).map(snake);
  const names = [...parameters.map((parameter) => parameter.name), ...fields, 'access_token'];
  if (tool!.paidWithout && !names.includes(tool!.paidWithout))
    say(`${name} has no argument ${tool!.paidWithout} that could be left out.`);
  if (tool!.confirm && !parameters.some((parameter) => parameter.name === tool!.confirm && parameter.required))
    say(`${name} has no required argument ${tool!.confirm} that could be confirmed.`);
  for (const twice of new Set(names.filter((one, i) => names.indexOf(one) !== i)))
    say(`${name} has two arguments called ${twice}.`);
}

function checkResource({ name, resource, parameters, input }: Operation, say: Say): void {
  const inUri = pathNames(resource!.uri);
  if (!RESOURCE.test(resource!.uri)) say(`The URI ${resource!.uri} of ${name} is not freehold:// and a path.`);
  for (const one of inUri)
    if (!parameters.some((parameter) => parameter.name === one)) say(`${name} has no variable for {${one}}.`);
  if (input || parameters.some((parameter) => parameter.required && !inUri.includes(parameter.name)))
    say(`${name} is a resource, and so can need no more than its URI says.`);
}

/** What is wrong with the documents together: one endpoint or tool in two of them. */
export function clashes(operations: readonly Operation[]): GraphQLError[] {
  const taken = new Map<string, Operation>();
  return operations.flatMap((operation) => {
    const { http, tool, resource, definition } = operation;
    const claims = [
      ...(http ? [`${http.method} ${http.path.replace(/\{\w+\}/g, '{}')}`] : []),
      ...(tool ? [`the tool ${tool.name}`] : []),
      ...(resource ? [`the resource ${resource.uri}`] : []),
    ];
    return claims.flatMap((claim) => {
      const other = taken.get(claim);
      if (!other) taken.set(claim, operation);
      const nodes = [definition.name!, ...(other ? [other.definition.name!] : [])];
      return other ? [new GraphQLError(`Two documents claim ${claim}.`, { nodes })] : [];
    });
  });
}
