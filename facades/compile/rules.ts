/** The rules of operation documents beyond those of GraphQL. Each problem names its file, line and column. */
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
const SNAKE_CASE = /^[a-z][a-z0-9_]*$/;

type Report = (message: string, node?: ASTNode) => void;

export function problemsOf(operation: Operation): GraphQLError[] {
  const problems: GraphQLError[] = [];
  const report: Report = (message, node = operation.definition.name!) => {
    problems.push(new GraphQLError(message, { nodes: node }));
  };
  const { name, description, http, tool, resource } = operation;
  if (!description) report(`${name} lacks a description.`);
  if (!http && !tool) report(`${name} has neither @http nor @tool, so callers cannot reach it.`);
  checkNames(operation, report);
  for (const parameter of operation.parameters) checkParameter(parameter, report);
  if (http) checkHttp(operation, report);
  if (tool) checkTool(operation, report);
  if (resource) checkResource(operation, report);
  return problems;
}

/** Checks that names are snake_case, and that `@answer` is on a field that can be the answer. */
function checkNames({ document, answer }: Operation, report: Report): void {
  visit(document, {
    Field(node: FieldNode) {
      if (!SNAKE_CASE.test(node.alias!.value)) report(`The name ${node.alias!.value} is not snake_case.`, node);
      if (hasDirective(node, 'answer') && node !== answer.node)
        report('@answer needs a field without siblings, outside of lists; so do the fields around it.', node);
    },
  });
}

function checkParameter(
  { name, type, in: location, header, required, description, node }: Parameter,
  report: Report,
): void {
  if (!description) report(`$${name} lacks a description, and so does its argument.`, node);
  if (location !== 'path') return;
  if (!required) report(`$${name} is in the path, so it must be required.`, node);
  if (header !== undefined) report(`$${name} is in the path, so it cannot be a header.`, node);
  if (isListType(getNullableType(type))) report(`$${name} is in the path, so it cannot be a list.`, node);
}

function checkHttp({ name, kind, http, scopes, parameters, input }: Operation, report: Report): void {
  const { method, path } = http!;
  if (!PATH.test(path)) report(`The path ${path} of ${name} must consist of lower-case segments and {parameters}.`);
  for (const inPath of pathNames(path)) {
    if (!parameters.some((parameter) => parameter.name === inPath)) report(`${name} has no variable for {${inPath}}.`);
  }
  if (method === 'GET' && input) report(`${name} is a GET, so it cannot have an input object.`);
  if (method === 'GET' && kind === 'mutation') report(`${name} is a GET, so it cannot be a mutation.`);
  const headers = parameters.flatMap(({ header }) => (header ? [header.toLowerCase()] : []));
  if (new Set(headers).size < headers.length) report(`${name} reads a header twice.`);
  if (parameters.some(readsCredential) && scopes.length)
    report(`${name} checks the credential itself, so it must be public.`);
}

function checkTool({ name, http, tool, answer, parameters, input }: Operation, report: Report): void {
  if (http?.status === 'PLANNED') report(`${name} is planned, so it cannot be a tool yet.`);
  if (http && http.style !== 'PLAIN') report(`${name} has a style of OAuth, so it cannot be a tool.`);
  if (!answer.page && !isCompositeType(getNamedType(answer.type)))
    report(`${name} is a tool, so its answer must be an object or a list.`);
  const fields = Object.keys(input?.type.getFields() ?? {}).map(snake);
  const names = [...parameters.map((parameter) => parameter.name), ...fields, 'access_token'];
  if (tool!.paidWithout && !names.includes(tool!.paidWithout))
    report(`paidWithout names ${tool!.paidWithout}, which is not an argument of ${name}.`);
  if (tool!.confirm && !parameters.some((parameter) => parameter.name === tool!.confirm && parameter.required))
    report(`confirm names ${tool!.confirm}, which is not a required argument of ${name}.`);
  for (const duplicate of new Set(names.filter((argument, i) => names.indexOf(argument) !== i)))
    report(`${name} has two arguments called ${duplicate}.`);
}

function checkResource({ name, resource, parameters, input }: Operation, report: Report): void {
  const inUri = pathNames(resource!.uri);
  if (!RESOURCE.test(resource!.uri)) report(`The URI ${resource!.uri} of ${name} must be freehold:// and a path.`);
  for (const variable of inUri)
    if (!parameters.some((parameter) => parameter.name === variable))
      report(`${name} has no variable for {${variable}}.`);
  if (input || parameters.some((parameter) => parameter.required && !inUri.includes(parameter.name)))
    report(`${name} is a resource, so its URI must contain every required variable.`);
}

/** Endpoints, tools and resources that two documents claim. */
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
