import { expect, it } from 'vitest';
import { publicServer } from '../../../facades/http/listener.ts';
import { neverEnds } from '../sample-api.ts';
import { INITIALIZE, rpc } from './raw-client.ts';

it('A fault of MCP is logged without the values in its message', async () => {
  const lines: object[] = [];
  const app = await publicServer({
    authenticate: async () => null,
    contextOf: (caller) => caller as never,
    publicUrl: 'http://localhost',
    newRequestId: () => 'req_test',
    mcpSecrets: [Buffer.alloc(32, 1)],
    onCredentialEnd: neverEnds,
    onError: (line) => lines.push(line),
    factoryOf: () => () => {
      throw new TypeError('No such row: ada@example.org');
    },
  });
  const headers = { accept: 'application/json, text/event-stream' };
  for (const payload of [rpc('initialize', INITIALIZE), rpc('tools/list')])
    expect((await app.inject({ method: 'POST', url: '/mcp', headers, payload })).statusCode).toBe(500);
  await app.close();
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatchObject({ name: 'TypeError', message: 'No such row …', stack: expect.any(Array) });
  expect(JSON.stringify(lines)).not.toContain('ada@example.org');
});
