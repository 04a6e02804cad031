import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../../setup/freehold.ts';
import { AGENTS } from '../agents.ts';

const { publicUrl, newAccount } = await startFreehold();
const { accessToken: credential } = await newAccount();
const endpoint = (query = '') => new URL(`${publicUrl}/mcp${query}`);

describe.each(AGENTS)('For the official client %s at %s', (_, __, connect) => {
  const called = async (query: string, name: string, args = {}) => {
    const { client } = await connect(endpoint(query), { credential });
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
    return { text: content[0].text as string, blocks: content.length, structuredContent, isError: Boolean(isError) };
  };

  it('an answer says nothing twice if the URL asks for a short text', async () => {
    const { text, blocks, structuredContent } = await called('?text=short', 'list_catalog');
    expect(structuredContent.vps[0].code).toBe('vps-1');
    expect([blocks, text]).toEqual([1, 'list_catalog has answered. The answer is in structuredContent.']);
  });

  it('an answer has its JSON as text otherwise, for the many clients that give only the text to a model', async () => {
    for (const query of ['', '?text=json', '?readonly=1']) {
      const { text, structuredContent } = await called(query, 'get_balance');
      expect(JSON.parse(text)).toEqual(structuredContent);
    }
  });

  it('an error keeps its JSON as text in any case', async () => {
    const { text, structuredContent, isError } = await called('?text=short', 'order_server', { service_code: 'none' });
    expect([isError, structuredContent.code]).toEqual([true, 'unknown_service_code']);
    expect(JSON.parse(text)).toEqual(structuredContent);
  });
});

it('The service refuses another text than json and short', async () => {
  for (const query of ['?text=', '?text=none', '?text=short&text=json']) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(endpoint(query), { method: 'POST', headers, body: '{}' });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { code: -32_000 } }]);
  }
});
