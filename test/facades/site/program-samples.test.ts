/** Every sample with a program runs: with the command line, and with the SDKs for TypeScript and Python. */
import { spawnSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { USAGES } from '../../../facades/cli/src/operations.ts';
import { newProgram } from '../../../facades/cli/src/program.ts';
import { readOperations } from '../../../facades/compile/read.ts';
import { openapi } from '../../../facades/openapi/document.ts';
import { type Endpoint, inputOf, isForm, referenceOf } from '../../../facades/site/document.ts';
import { samplesOf } from '../../../facades/site/samples/samples.ts';
import { schema } from '../../../schema/index.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { say } from '../../setup/say.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { type Outcome, runCommands, runPython, runTypescript, type Sample } from './run-samples.ts';
import { ALLOWS_RECEIVER, inOrder, newSampleAccount, REFUSED } from './sample-account.ts';
import { startSampleProxy } from './sample-proxy.ts';

const OLD = 'import sys; sys.exit(sys.version_info < (3, 10))';
const PYTHON = ['/usr/bin/python3', 'python3'].find((command) => spawnSync(command, ['-c', OLD]).status === 0);
if (!PYTHON) say('skipped: the samples in Python, because there is no python3 of 3.10 or newer');

const freehold = await startFreehold(ALLOWS_RECEIVER);
const operations = readOperations(schema);
const { nouns } = referenceOf(openapi(operations, freehold.publicUrl), operations);
const live = nouns.flatMap(({ endpoints }) => endpoints).filter(({ isPlanned }) => !isPlanned);
const ordered = inOrder(live);
const DOWNLOADABLE = ['freehold-0.1.0.tgz', 'freehold-0.1.0-py3-none-any.whl', 'freehold-cli-0.1.0.tgz'];

type Run = (samples: readonly Sample[], setting: { folder: string; token: string }) => Promise<Outcome[]>;

/** Runs all samples of a language with an account of their own. Returns what is wrong with each. */
async function faultsOf(title: string, run: Run): Promise<string[]> {
  const { accessToken, fill } = await newSampleAccount(freehold, atEnd);
  const proxy = await startSampleProxy(freehold.publicUrl, atEnd);
  const folder = newFolder();
  atEnd(() => removeFolder(folder));
  const endpoints = ordered.filter((endpoint) => !isForm(endpoint));
  const samples = endpoints.map((endpoint, at) => {
    const made = samplesOf(endpoint, proxy.urlOf(at), DOWNLOADABLE).find((one) => one.title === title);
    return { code: fill(made!.code, endpoint.name), url: proxy.urlOf(at) };
  });
  const outcomes = await run(samples, { folder, token: accessToken });
  expect(outcomes).toHaveLength(samples.length);
  return endpoints.flatMap((endpoint, at) => {
    const { fault = undefined, printed } = outcomes[at]!;
    const sent = proxy.sentBy(at);
    const wanted = requestOf(endpoint, (text) => fill(text, endpoint.name));
    const faults = [
      fault !== REFUSED[endpoint.name] && `${fault ?? 'was not refused'} ${printed}`,
      !sent.some((one) => isDeepStrictEqual(one, wanted)) &&
        `sent ${JSON.stringify(sent)}, not ${JSON.stringify(wanted)}`,
      !fault && !printed && 'printed nothing',
    ];
    return faults.filter(Boolean).map((one) => `${endpoint.name}: ${one}\n${samples[at]!.code}`);
  });
}

/** The request that the sample in curl sends. */
function requestOf(endpoint: Endpoint, fill: (text: string) => string) {
  const { path, body } = inputOf(endpoint);
  const taken = Object.entries(path).reduce(
    (text, [name, value]) => text.replace(`{${name}}`, `${value}`),
    endpoint.path,
  );
  return {
    method: endpoint.method,
    path: fill(taken),
    ...(endpoint.body && { body: JSON.parse(fill(JSON.stringify(body))) }),
  };
}

describe('Each sample sends the request of its page, and the service does it,', () => {
  it('in commands of the program', async () => {
    expect(await faultsOf('CLI', runCommands)).toEqual([]);
  });

  it('in TypeScript, whose types are right', async () => {
    expect(await faultsOf('TypeScript', runTypescript)).toEqual([]);
  });

  it.skipIf(!PYTHON)('in Python', async () => {
    expect(await faultsOf('Python', (samples, setting) => runPython(PYTHON!, samples, setting))).toEqual([]);
  });
});

it('Every operation has a sample in every language, but those that take the forms of OAuth', () => {
  const titles = (endpoint: Endpoint) =>
    samplesOf(endpoint, freehold.publicUrl, DOWNLOADABLE).map(({ title }) => title);
  for (const endpoint of live)
    expect(
      titles(endpoint).filter((title) => title !== 'MCP'),
      endpoint.name,
    ).toEqual(isForm(endpoint) ? ['curl'] : ['curl', 'CLI', 'TypeScript', 'Python']);
  expect(live.filter(isForm).map(({ name }) => name)).toEqual([
    'IssueOauthToken',
    'RevokeOauthToken',
    'PostOauthIntrospection',
  ]);
});

/** The commands that do more or less than one operation. */
const OTHER_COMMANDS = [
  ...['ssh', 'logout', 'profile', 'api', 'completion', '__complete', 'catalog locations', 'catalog images'],
  ...['topup watch', 'server start', 'server reboot', 'server reset', 'server resize', 'server rebuild'],
];

it('Every command of the program that does an operation is its sample', () => {
  const leaves = (command: Command, words: string[] = []): string[] =>
    command.commands.length
      ? command.commands.flatMap((one) => leaves(one, [...words, one.name()]))
      : [words.join(' ')];
  const sampled = [...USAGES.values()].map(({ command }) => command.replace(/ -$/, ''));
  expect(leaves(newProgram()).sort()).toEqual([...sampled, ...OTHER_COMMANDS].sort());
});
