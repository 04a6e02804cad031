/** Every sample of the reference in curl does its operation, and so does every call of a tool. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { ALLOWS_RECEIVER, inOrder, newSampleAccount, REFUSED } from './sample-account.ts';
import { visit } from './visits.ts';

const freehold = await startFreehold(ALLOWS_RECEIVER);
const { publicUrl, anonymous } = freehold;
const run = promisify(execFile);

const unescaped = (html: string) =>
  html
    .replace(/<[^>]+>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
    .replaceAll('&amp;', '&');

/** The pages of operations, with the sample of each language. */
async function samplesOf() {
  const index = (await visit(`${publicUrl}/docs/api`)).text;
  const paths = [...new Set([...index.matchAll(/href="(\/docs\/api\/[^/"]+\/[^"]+)"/g)].map(([, path]) => path!))];
  return Promise.all(
    paths.map(async (path) => {
      const { text } = await visit(publicUrl + path);
      const titles = [...text.matchAll(/<label[^>]*>([^<]+)</g)].map(([, title]) => title!);
      const panels = [...text.matchAll(/class="panel\d"><pre[^>]*><code>([\s\S]*?)<\/code>/g)];
      const sample = (title: string) => {
        const code = panels[titles.indexOf(title)]?.[1];
        return code && unescaped(code);
      };
      const name = path.replace(/.*\//, '-').replace(/-(.)/g, (_, letter) => letter.toUpperCase());
      return { name, curl: sample('curl'), tool: sample('MCP') };
    }),
  );
}

describe('A sample of the reference', () => {
  it('in curl does every operation that is available', async () => {
    const { accessToken, fill } = await newSampleAccount(freehold, atEnd);
    const samples = (await samplesOf()).flatMap(({ name, curl }) => (curl ? [{ name, curl: fill(curl, name) }] : []));
    expect(samples.length).toBeGreaterThan(55);
    const { body: client } = await anonymous('POST', '/v1/oauth/register', { client_name: 'sample', scope: 'servers' });
    const env = {
      PATH: process.env.PATH,
      FREEHOLD_TOKEN: accessToken,
      CLIENT_ID: client.client_id,
      CLIENT_SECRET: client.client_secret,
    };
    const faults: string[] = [];
    for (const { name, curl } of inOrder(samples)) {
      const { stdout } = await run('bash', ['-euc', curl.replace(/^curl /, 'curl -s ')], { env });
      const { code, detail, request_id } = JSON.parse(stdout);
      const refusal = request_id && code;
      if (refusal !== REFUSED[name]) faults.push(`${name}: ${refusal} ${detail}\n${curl}`);
    }
    expect(faults).toEqual([]);
  });

  it('in MCP does every operation that has a tool', async () => {
    const { accessToken, fill } = await newSampleAccount(freehold, atEnd);
    const headers = {
      authorization: `Bearer ${accessToken}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    };
    const calls = (await samplesOf()).flatMap(({ name, tool }) =>
      tool ? [{ name, call: JSON.parse(fill(tool, name)) }] : [],
    );
    expect(calls.length).toBeGreaterThan(35);
    const refused: string[] = [];
    for (const { name, call } of inOrder(calls)) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...call });
      const answer = await (await fetch(`${publicUrl}/mcp`, { method: 'POST', headers, body })).text();
      const { result, error } = JSON.parse(answer.replace(/^[\s\S]*?data: /, ''));
      const { code, detail } = result?.structuredContent ?? {};
      if (error || (result.isError ? code : undefined) !== REFUSED[name])
        refused.push(`${call.params.name}: ${code} ${detail ?? answer}`);
    }
    expect(refused).toEqual([]);
  });
});
