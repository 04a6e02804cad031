import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../../setup/freehold.ts';
import { restClient } from '../../../setup/spawn.ts';
import { NEWEST } from '../agents.ts';
import { Agent } from './agent.ts';
import { TASKS } from './tasks.ts';

const freehold = await startFreehold();
const url = new URL(`${freehold.publicUrl}/mcp`);

describe('An agent without a model, and without knowledge of the service, can', () => {
  it.each(TASKS)('$goal', async ({ goal, usd, facts, moves, meets, holds }) => {
    const agent = await Agent.connect(NEWEST, url, goal, facts);
    if (usd !== undefined) {
      const account = await freehold.newAccount();
      if (usd) await account.fund(usd);
      agent.memory.remember('tokens', { access_token: account.accessToken });
    }
    let answer = {};
    for (const move of moves) answer = await agent.make(move);
    expect(agent.met).toEqual(expect.arrayContaining(meets));
    await holds(restClient(freehold.publicUrl, String(agent.memory.latest('access_token'))), answer);
  });
});

it('The agent names no tool by itself', async () => {
  const tools = await (await NEWEST(url)).tools();
  const source = ['agent', 'choose', 'memory', 'repair', 'tasks']
    .map((name) => readFileSync(new URL(`./${name}.ts`, import.meta.url), 'utf8'))
    .join();
  expect(tools.filter(({ name }) => name.includes('_') && source.includes(name))).toEqual([]);
});
