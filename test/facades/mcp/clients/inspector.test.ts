import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../../setup/freehold.ts';
import { restClient } from '../../../setup/spawn.ts';
import { run } from './commands.ts';

const freehold = await startFreehold();
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ agent@nowhere';
/** Exit codes of the inspector. */
const [AUTH_REQUIRED, TOOL_ERROR] = [3, 5];
const SECONDS = 240_000;

/** Commands are slow, so each protocol version tests one way of authentication in full, and one step of the other. */
describe.each([
  ['legacy', '2025-11-25', 'the header'],
  ['modern', '2026-07-28', 'access_token'],
])('The inspector in the %s version', (era, version, way) => {
  /** Runs one method. The inspector reports all its complaints on stderr. */
  const inspect = async (method: string, options: string[] = [], credential?: string) => {
    const header = credential === undefined ? [] : ['--header', `Authorization: Bearer ${credential}`];
    const args = ['--cli', `${freehold.publicUrl}/mcp`, '--protocol-era', era, '--format', 'json', ...header];
    const { code, stdout, stderr } = await run('mcp-inspector', [...args, '--method', method, ...options]);
    return { code, stderr, result: stdout ? JSON.parse(stdout).result : undefined };
  };
  const caller = (credential?: string) => async (name: string, args: object) => {
    const options = ['--tool-name', name, '--tool-args-json', JSON.stringify(args)];
    const { code, result } = await inspect('tools/call', options, credential);
    return { code, content: result?.structuredContent };
  };

  it(
    'negotiates the revision, and accepts the schemas of all tools',
    async () => {
      const { code, result } = await inspect('initialize');
      expect([code, result]).toMatchObject([
        0,
        { protocolVersion: version, serverInfo: { name: 'freehold', version: '1.1.0' } },
      ]);
      const { accessToken } = await freehold.newAccount();
      for (const credential of [undefined, accessToken]) {
        const listed = await inspect('tools/list', ['--strict', '-q'], credential);
        expect([listed.code, listed.stderr]).toEqual([0, '']);
        expect(listed.result.tools.length).toBeGreaterThan(30);
      }
    },
    SECONDS,
  );

  it(
    `runs the whole journey with ${way}`,
    async () => {
      const registered = await caller()('register_account', {
        email: `inspector-${era}@example.org`,
        password: 'a heron on the roof',
      });
      const { access_token } = registered.content.tokens;
      const named = { name: 'inspector', scope: 'servers billing', access_token };
      const { plaintext } = (await caller()('create_api_key', named)).content;
      const byHeader = way === 'the header';
      const credential = byHeader ? {} : { access_token: plaintext };
      const call = caller(byHeader ? plaintext : undefined);
      const other = byHeader
        ? caller()('get_balance', { access_token: plaintext })
        : caller(plaintext)('get_balance', {});
      expect(await other).toMatchObject({ code: 0, content: { balance_usd: 0 } });

      const key = await call('add_ssh_key', { public_key: KEY, ...credential });
      expect(key.content.fingerprint).toMatch(/^SHA256:/);
      const unpaid = await call('order_server', { service_code: 'vps-1', ...credential });
      expect(unpaid).toMatchObject({ code: TOOL_ERROR, content: { code: 'insufficient_balance', required_usd: 6 } });
      await call('create_topup', { amount_usd: 50, crypto: 'xmr', ...credential });
      const rest = restClient(freehold.publicUrl, plaintext);
      await eventually(async () => (await rest('GET', '/v1/account/balance')).body.balance_usd === 50, 120);
      expect(await call('get_balance', credential)).toMatchObject({ code: 0, content: { balance_usd: 50 } });
      const ordered = await call('order_server', { service_code: 'vps-1', ...credential });
      const { order_number } = ordered.content;
      const running = await call('wait_for_server', { order_number, status: 'running', ...credential });
      expect(running).toMatchObject({ code: 0, content: { order_number, status: 'running' } });
      const read = await call('get_server', { order_number, ...credential });
      expect(read.content).toEqual(running.content);
      const deleted = await call('cancel_server', { order_number, confirm: order_number, ...credential });
      expect(deleted).toMatchObject({ code: 0, content: { status: 'deleting' } });
      await eventually(async () => (await rest('GET', `/v1/servers/${order_number}`)).status === 404, 120);
      const gone = await call('get_server', { order_number, ...credential });
      expect(gone).toMatchObject({ code: TOOL_ERROR, content: { code: 'not_found' } });
    },
    SECONDS,
  );

  it(
    'distinguishes a refused credential from a refused call',
    async () => {
      expect((await inspect('tools/list', [], 'svc_live_nonsense')).code).toBe(AUTH_REQUIRED);
      expect(await caller()('get_balance', {})).toMatchObject({
        code: TOOL_ERROR,
        content: { code: 'missing_credential', detail: expect.stringContaining('access_token') },
      });
      const wrong = await caller()('get_balance', { access_token: 'svc_live_nonsense' });
      expect(wrong).toMatchObject({ code: TOOL_ERROR, content: { code: 'invalid_credential' } });
    },
    SECONDS,
  );
});
