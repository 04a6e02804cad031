/** Samples for a shell: with curl, and with the command line of Freehold. */
import { USAGES } from '../../cli/src/operations.ts';
import { type Endpoint, inputOf, isForm, type Values } from '../document.ts';

/** A text as one word of a shell. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const lines = (parts: readonly string[]): string => parts.join(' \\\n  ');
const bodyOf = (example: unknown): string => quoted(JSON.stringify(example ?? {}, null, 2));

/** The path with its examples, and with the parameters of the query that the operation requires. */
function filledPath(endpoint: Endpoint): string {
  const { path: given, query } = inputOf(endpoint);
  const path = Object.entries(given).reduce(
    (text, [name, value]) => text.replace(`{${name}}`, String(value)),
    endpoint.path,
  );
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
  return `${path}${search && `?${search}`}`;
}

/** Optional members of the example stay, because they show what a caller may send. */
export function curlOf(endpoint: Endpoint, publicUrl: string): string {
  const { method, credential, body } = endpoint;
  const url = quoted(publicUrl + filledPath(endpoint));
  const parts = [method === 'GET' || (method === 'POST' && body) ? `curl ${url}` : `curl -X ${method} ${url}`];
  if (credential === 'client') parts.push('-u "$CLIENT_ID:$CLIENT_SECRET"');
  else if (credential) parts.push('-H "Authorization: Bearer $FREEHOLD_TOKEN"');
  if (body && isForm(endpoint))
    for (const [name, value] of Object.entries(body.example as Values)) parts.push(`-d ${quoted(`${name}=${value}`)}`);
  else if (body) {
    parts.push("-H 'Content-Type: application/json'");
    parts.push(`-d ${bodyOf(body.example)}`);
  }
  return lines(parts);
}

/** The command of an operation, or `freehold api`. It sends no forms. */
export function commandOf(endpoint: Endpoint): string | undefined {
  if (isForm(endpoint)) return undefined;
  const { method, body } = endpoint;
  const api = `freehold api ${method} ${quoted(filledPath(endpoint))}`;
  return ownCommandOf(endpoint) ?? lines(body ? [api, `-d ${bodyOf(body.example)}`] : [api]);
}

/** Undefined if the program has no command for the operation, or none that takes all members of the example. */
function ownCommandOf(endpoint: Endpoint): string | undefined {
  const usage = USAGES.get(endpoint.name);
  if (!usage) return undefined;
  const { path, query, body } = inputOf(endpoint);
  const left = new Map<string, unknown>(Object.entries({ ...path, ...query, ...body }));
  const take = (member: string): unknown => {
    const value = left.get(member);
    left.delete(member);
    return value;
  };
  for (const [member, value] of Object.entries(usage.implied ?? {})) if (take(member) !== value) return undefined;
  const words = (usage.arguments ?? []).map((member) => quoted(String(take(member))));
  const input = usage.input && quoted(String(take(usage.input)));
  const options = Object.entries(usage.options ?? {}).flatMap(([member, option]) =>
    left.has(member) ? optionsOf(option!, take(member)) : [],
  );
  if (left.size) return undefined;
  const command = ['freehold', usage.command, ...words, ...(usage.inScripts ? [usage.inScripts] : [])].join(' ');
  const parts = options.length > 2 ? [command, ...options] : [[command, ...options].join(' ')];
  return `${input ? `echo ${input} |\n  ` : ''}${lines(parts)}`;
}

/** An option for each entry of a list, and for each member of an object. */
function optionsOf(option: string, value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => optionsOf(option, one));
  if (typeof value === 'object' && value)
    return Object.entries(value).flatMap(([name, one]) => optionsOf(option, `${name}=${one}`));
  return [`${option} ${quoted(String(value))}`];
}
