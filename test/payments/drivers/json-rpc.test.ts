/** The client of all nodes. Each stub answers as its test says. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { RpcRequestError } from 'viem';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { JsonRpc, RpcError } from '../../../provisioning/payments/drivers/json-rpc.ts';
import { Nodes } from '../../../provisioning/payments/drivers/nodes.ts';
import { X402Chain } from '../../../provisioning/payments/drivers/x402/chain.ts';
import { isAway, providerOf } from '../../../provisioning/payments/drivers/x402/nodes.ts';

const { signal } = new AbortController();

interface Node {
  url: string;
  status: number;
  answer: object;
  bodies: { method: string; params: unknown }[];
}

/** The call by which a node shows that it has not stopped. */
const HEAD = 'eth_getBlockByNumber';
const NEW_HEAD = { result: { timestamp: '0xffffffff' } };

async function startNode(answer: object, status = 200): Promise<Node> {
  const node: Node = { url: '', status, answer, bodies: [] };
  const server = createServer(async (request, response) => {
    const body = JSON.parse((await request.toArray()).join(''));
    node.bodies.push(body);
    response
      .writeHead(node.status)
      .end(JSON.stringify({ id: body.id, ...(body.method === HEAD ? NEW_HEAD : node.answer) }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  node.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return node;
}

const nodesOf = (...urls: string[]) => new Nodes(urls.map((url) => new JsonRpc({ url, batchMax: 1 })));
const BUSY = { error: { code: -32005, message: 'limit exceeded' } };

describe('A client of JSON-RPC', () => {
  it('goes on with the next node after an error, and comes back to the first one after a minute', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const [one, two] = [await startNode(BUSY), await startNode({ result: 7 })];
    const nodes = nodesOf(one.url, two.url);
    for (let i = 0; i < 2; i++) expect(await nodes.ask(signal, (node) => node.call(signal, 'number', 1, 2))).toBe(7);
    expect([one.bodies.length, two.bodies.length]).toEqual([1, 2]);
    expect(two.bodies[0]!.params).toEqual([1, 2]);
    one.answer = { result: 8 };
    vi.advanceTimersByTime(61_000);
    expect(await nodes.ask(signal, (node) => node.call(signal, 'number'))).toBe(8);
  });

  it('throws the error of the nodes if all have one, and names all faults otherwise', async () => {
    const [one, two] = [await startNode(BUSY, 429), await startNode(BUSY)];
    const ask = (...urls: string[]) => nodesOf(...urls).ask(signal, (node) => node.call(signal, 'number'));
    await expect(ask(one.url, two.url)).rejects.toMatchObject({ name: 'RpcError', code: -32005, status: 429 });
    const down = 'http://127.0.0.1:1';
    await expect(ask(one.url, down)).rejects.toThrow(/^node 1: limit exceeded; node 2: The node is unr/);
    await expect(ask(one.url, down)).rejects.not.toBeInstanceOf(RpcError);
  });

  it('shows the message of a node in one line, without commands to a terminal', async () => {
    const message = 'busy\r\u001b[2K\u001b[1AFINAL out_1\u001b]0;title\u0007\nFINAL out_2 \u202egnol';
    const node = await startNode({ error: { code: 1, message: message + '.'.repeat(1_000) } });
    const fault = await nodesOf(node.url)
      .ask(signal, (one) => one.call(signal, 'number'))
      .catch((error: Error) => error);
    expect((fault as Error).message).toBe('busy [2K [1AFINAL out_1 ]0;title FINAL out_2 gnol'.padEnd(500, '.'));
  });

  it('sends parameters by name, and reads amounts to the last digit', async () => {
    const node = await startNode({ result: 1 });
    const reviver = (key: string, value: unknown, { source }: { source: string }) =>
      key === 'result' ? BigInt(source) : value;
    const rpc = new JsonRpc({ url: node.url, batchMax: 1, named: true, reviver });
    expect([await rpc.call(signal, 'one', { a: 1 }), await rpc.call(signal, 'two')]).toEqual([1n, 1n]);
    expect(node.bodies.map(({ params }) => params)).toEqual([{ a: 1 }, {}]);
  });

  it.each([
    [429, true],
    [200, false],
  ])('tells x402 that a node is away if it answers an error with status %d: %s', async (status, away) => {
    const node = await startNode({ error: { code: 3, message: 'execution reverted' } }, status);
    const settings = { rpcUrls: [node.url], confirmations: 1, safeAboveUsd: 1, logBlocks: 1, staleSeconds: 300 };
    const { client } = new X402Chain({ network: 'eip155:8453' } as never, settings);
    const fault = await client.getBlockNumber().catch((error) => error);
    expect([fault instanceof Error, isAway(fault)]).toEqual([true, away]);
    expect(String(fault.stack)).not.toContain(node.url);
  });

  it.each([
    ['reverted', { code: 3, message: 'execution reverted' }],
    ['refused', { code: -32000, message: 'invalid opcode: 0xfe' }],
  ])('gives x402 the answer of the node that %s a simulation, if another one is away', async (_, error) => {
    const node = await startNode({ error }, 200);
    for (const rpcUrls of [
      [node.url, 'http://127.0.0.1:1'],
      ['http://127.0.0.1:1', node.url],
    ]) {
      const provider = providerOf(rpcUrls, 300);
      const call = provider.request({ method: 'eth_call', params: [{}, 'latest'] });
      await expect(call).rejects.toThrow(RpcRequestError);
    }
  });

  it('does not wait for another node with x402 when a node reverts a simulation', async () => {
    const node = await startNode({ error: { code: 3, message: 'execution reverted' } }, 200);
    const other = await startNode({ result: '0x' });
    const { request } = providerOf([node.url, other.url], 300);
    await expect(request({ method: 'eth_call', params: [{}, 'latest'] })).rejects.toThrow(RpcRequestError);
    expect(other.bodies).toEqual([]);
    await expect(request({ method: 'eth_sendRawTransaction' })).resolves.toBe('0x');
  });
});
