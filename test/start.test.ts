/** The start loads what every request needs, and no more. The rest comes with its first use. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newDatabaseUrl } from './setup/database.ts';
import { MAIN, newFolder, type RunningService, removeFolder, restClient, spawnService } from './setup/spawn.ts';

const HOOKS = join(import.meta.dirname, 'packages.ts');
/** A nursery that grows with the start has 64 MiB. */
const NURSERY_MAX = 16 * 1024 * 1024;
const PERSON = { email: 'heron@example.org', password: 'a heron on the roof' };

/** The report of a process at its end. */
interface Report {
  /** The packages that it loaded. */
  loaded: string[];
  /** The bytes of V8's space for new objects. */
  nursery: number;
}

/** Starts the service, does the work, and returns the report of the process. */
async function reportAfter(
  work: (service: RunningService) => Promise<unknown>,
  environment: Record<string, string> = {},
): Promise<Report> {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const report = join(folder, 'loaded.json');
  const service = await spawnService({
    DATA_DIR: folder,
    LOADED_REPORT: report,
    NODE_OPTIONS: `--import=${HOOKS}`,
    ...environment,
  });
  await work(service).finally(() => service.stop());
  return JSON.parse(readFileSync(report, 'utf8'));
}

/** The packages that wait for their use. */
const LATER = [
  ...['viem', '@x402/core', '@x402/evm', '@scure/base', '@scure/bip32', '@noble/curves', '@noble/hashes', 'ox'],
  ...['graphql-yoga', '@graphql-yoga/render-graphiql', 'graphql-jit', '@modelcontextprotocol/server', 'zod'],
  ...['preact', 'preact-render-to-string', 'htm', 'markdown-it', 'highlight.js'],
  ...['@node-rs/argon2', '@zxcvbn-ts/language-common', 'openpgp', 'unixcrypt', 'uqr', 'ioredis', 'prom-client'],
  ...['@opentelemetry/api', '@opentelemetry/sdk-trace', '@opentelemetry/exporter-trace-otlp-http'],
];
const later = ({ loaded }: Report) => LATER.filter((name) => loaded.includes(name)).sort();

describe('The start of a service without configuration', () => {
  it('loads no chain, no page, no MCP, no GraphQL over HTTP and no library of passwords', async () => {
    const report = await reportAfter(async () => {});
    expect(report.loaded).toContain('fastify');
    expect(later(report)).toEqual([]);
  });

  it('leaves the nursery of V8 small, so that a service at rest keeps no garbage of the start', async () => {
    const { nursery } = await reportAfter(async () => {});
    expect(nursery).toBeLessThanOrEqual(NURSERY_MAX);
  });
});

describe('A use loads its packages', () => {
  it.each([
    ['a read over REST', ['graphql-jit'], ({ url }: RunningService) => fetch(`${url}/v1/catalog`)],
    [
      'a registration',
      ['@node-rs/argon2', '@zxcvbn-ts/language-common', 'graphql-jit'],
      ({ url }: RunningService) => restClient(url)('POST', '/v1/auth/register', PERSON),
    ],
    [
      'a page of the site',
      ['highlight.js', 'htm', 'markdown-it', 'preact', 'preact-render-to-string'],
      ({ url }: RunningService) => fetch(`${url}/docs/quickstart`),
    ],
    [
      'a query over GraphQL',
      ['graphql-yoga'],
      ({ graphql, operatorToken }: RunningService) =>
        fetch(graphql, {
          method: 'POST',
          headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
          body: '{"query":"{ __typename }"}',
        }),
    ],
  ])('%s', async (_, packages, use) => {
    // A start with a database of its own costs twice as much, and the first test has one.
    expect(later(await reportAfter(use, { DATABASE_URL: await newDatabaseUrl() }))).toEqual(packages);
  });
});

it('An old Node gets a sentence, and no stack trace', () => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.1.0' } })`;
  const { status, stderr } = spawnSync(process.execPath, [
    `--import=data:text/javascript,${encodeURIComponent(old)}`,
    MAIN,
  ]);
  expect([status, String(stderr)]).toEqual([
    1,
    expect.stringMatching(/^Freehold needs Node 24 or newer, and this is v/),
  ]);
  expect(String(stderr).trim().split('\n')).toHaveLength(1);
});
