/** Samples of an operation, made from the examples of the OpenAPI document: for shells, programs and agents. */
import { type Endpoint, inputOf, type Values } from '../document.ts';
import { pythonCallOf, typescriptCallOf } from './sdk.ts';
import { commandOf, curlOf } from './shell.ts';

export interface Sample {
  title: string;
  /** A language of markdown.ts. */
  language: string;
  code: string;
}

/** Makes a sample, or undefined if the language cannot do the operation. */
type Make = (endpoint: Endpoint, publicUrl: string) => string | undefined;

/** The programs that visitors can download, by their files. Only these have samples. */
const PROGRAMS: readonly { title: string; language: string; file: RegExp; make: Make }[] = [
  { title: 'CLI', language: 'bash', file: /^freehold-cli-.*\.tgz$/, make: commandOf },
  { title: 'TypeScript', language: 'ts', file: /^freehold-\d.*\.tgz$/, make: typescriptCallOf },
  { title: 'Python', language: 'python', file: /^freehold-\d.*\.whl$/, make: pythonCallOf },
];

/** The call of a tool in JSON-RPC, as an agent's client sends it. */
export function toolCallOf(endpoint: Endpoint): string | undefined {
  const { tool: name, confirmed } = endpoint;
  if (!name) return undefined;
  const { path, query, body } = inputOf(endpoint);
  const given: Values = { ...path, ...query, ...body };
  // The client of an agent without a user cannot ask.
  if (confirmed) given.confirm = given[confirmed];
  return JSON.stringify({ method: 'tools/call', params: { name, arguments: given } }, null, 2);
}

/** All samples of an operation. A planned one has none. @param downloadable the files that visitors can download */
export function samplesOf(endpoint: Endpoint, publicUrl: string, downloadable: readonly string[]): Sample[] {
  if (endpoint.isPlanned) return [];
  const programs = PROGRAMS.filter(({ file }) => downloadable.some((name) => file.test(name)));
  return [
    { title: 'curl', language: 'bash', make: curlOf },
    ...programs,
    { title: 'MCP', language: 'json', make: toolCallOf },
  ].flatMap(({ title, language, make }) => {
    const code = make(endpoint, publicUrl);
    return code === undefined ? [] : [{ title, language, code }];
  });
}
