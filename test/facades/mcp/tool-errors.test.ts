import { describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode } from '../../../entities/errors.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { AGENTS, type Agent } from './agents.ts';

const freehold = await startFreehold();
const url = new URL(`${freehold.publicUrl}/mcp`);
const { accessToken, rest } = await freehold.newAccount();
const { plaintext: reader } = (await rest('POST', '/v1/auth/api-keys', { name: 'reader', scope: 'read' })).body;

interface Tool {
  name: string;
  inputSchema: { properties?: Record<string, { type?: string }>; required?: string[] };
}

/** Calls a tool and checks its error: it is flat, of the catalogue, and helps a program and a person. */
async function failing({ call }: Agent, tool: string, args: Record<string, unknown>, ...codes: ErrorCode[]) {
  const { isError, content } = await call(tool, args);
  const about = `${tool}(${JSON.stringify(args)}): ${JSON.stringify(content)}`;
  expect(isError, about).toBe(true);
  expect(codes, about).toContain(content.code);
  const [status, , retryable = false] = ERRORS[content.code as ErrorCode] as readonly [number, string, boolean?];
  expect(content, about).toMatchObject({
    status,
    retryable,
    type: `${freehold.publicUrl}/docs/errors#${content.code}`,
    title: expect.stringMatching(/^[A-Z]/),
    detail: expect.stringMatching(/^\S.{10,}\.( \(\d+ more\))?$/),
    request_id: expect.stringMatching(/^req_/),
  });
  return content;
}

/** Codes of an unknown argument, alone or among other faults. */
const UNKNOWN = ['unknown_field', 'validation_failed'] as const;
/** These clients also check errors against the output schema, once they have listed the tools. */
const CHECKING = AGENTS.filter(([name]) => name === 'v1');

describe.each(CHECKING)('For the official client %s at %s', (_, version, connect) => {
  const listed = async (credential?: string) => {
    const agent = await connect(url, credential === undefined ? {} : { credential });
    expect(agent.version).toBe(version);
    return { agent, tools: (await agent.tools()) as Tool[] };
  };

  it('each tool reports a missing, wrong or too narrow credential', async () => {
    const { agent, tools } = await listed();
    let guarded = 0;
    for (const { name, inputSchema } of tools) {
      await failing(agent, name, { access_token: 'svc_live_nonsense' }, 'invalid_credential');
      if (!inputSchema.properties?.access_token) continue;
      guarded++;
      expect((await failing(agent, name, {}, 'missing_credential')).detail).toContain('access_token');
      const args = { access_token: reader, nothing: 1 };
      const { code, required_scope } = await failing(agent, name, args, 'insufficient_scope', ...UNKNOWN);
      if (code === 'insufficient_scope') expect(required_scope).toMatch(/^(servers|billing|full)$/);
    }
    expect(guarded).toBeGreaterThan(25);
  });

  it('each tool reports unknown and missing arguments', async () => {
    const { agent, tools } = await listed(accessToken);
    for (const { name, inputSchema } of tools) {
      const { errors } = await failing(agent, name, { nothing: 1 }, ...UNKNOWN);
      const { required = [] } = inputSchema;
      expect([name, fields(errors)]).toEqual([name, expect.arrayContaining([...required, 'nothing'])]);
    }
  });
});

const fields = (errors: { field: string }[]) => errors.map(({ field }) => field.split(/[.[]/)[0]);

describe('Each tool', async () => {
  const [, , connect] = CHECKING.at(-1)!;
  const NAMES: Record<string, unknown> = { status: 'running', timeout: 1 };
  const IDS = ['order_number', 'id', 'key_id', 'code', 'delivery_id'];

  it('names each argument of a wrong type', async () => {
    const agent = await connect(url, { credential: accessToken });
    let wrong = 0;
    for (const { name, inputSchema } of (await agent.tools()) as Tool[]) {
      for (const [argument, { type }] of Object.entries(inputSchema.properties ?? {})) {
        const value = type === 'object' ? 7 : { wrong: true };
        const args = { ...(argument === 'confirm' && { order_number: 'nothing' }), [argument]: value };
        const { errors } = await failing(agent, name, args, 'validation_failed');
        expect([name, fields(errors)]).toEqual([name, expect.arrayContaining([argument])]);
        wrong++;
      }
    }
    expect(wrong).toBeGreaterThan(90);
  });

  it('reports an object that does not exist', async () => {
    const agent = await connect(url, { credential: accessToken });
    const absent: string[] = [];
    for (const { name, inputSchema } of (await agent.tools()) as Tool[]) {
      const { required = [], properties = {} } = inputSchema;
      if (!required.some((one) => IDS.includes(one))) continue;
      for (const id of ['nothing', 'SRV-0000000000', '../../v1/account', '%00', 'ü'.repeat(200)]) {
        const args = Object.fromEntries(required.map((one) => [one, IDS.includes(one) ? id : NAMES[one]]));
        await failing(agent, name, { ...args, ...(properties.confirm && { confirm: id }) }, 'not_found');
      }
      absent.push(name);
    }
    expect(absent.length).toBeGreaterThan(11);
  });
});
