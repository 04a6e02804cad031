/** A proxy that shows an older state of an EVM chain, or is busy after it told the head. So nodes behind it disagree. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface View {
  url: string;
  /** The blocks that it does not show, for each HTTP request. */
  lag: () => number;
  /** Whether it answers all other calls than that for the head with status 429. */
  isBusy: boolean;
  /** The URL of another node that it shows instead. */
  redirect?: string;
  /** How often it was asked for its head. */
  heads: number;
  stop(): Promise<unknown>;
}

interface Asked {
  id: number;
  method: string;
  params: unknown[];
}
type Block = { number: string } | null;

const BUSY = { code: -32005, message: 'limit exceeded' };

export async function openView(node: string): Promise<View> {
  const post = async (body: unknown) =>
    (
      await fetch(view.redirect ?? node, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).text();
  const result = async (method: string, params: unknown[]) =>
    JSON.parse(await post({ jsonrpc: '2.0', id: 1, method, params })).result;
  const answer = async ({ method, params, id }: Asked, lag: number) => {
    const head = Number(await result('eth_blockNumber', [])) - lag;
    const isHead = method === 'eth_getBlockByNumber' && params[0] === 'latest';
    if (isHead) view.heads++;
    if (view.isBusy && !isHead && method !== 'eth_chainId' && method !== 'eth_syncing') return { id, error: BUSY };
    const given = isHead ? [`0x${head.toString(16)}`, params[1]] : params;
    const found = await result(method, given);
    const height = Number((found as Block)?.number ?? 0);
    if (method.startsWith('eth_getBlockBy')) return { id, result: height > head ? null : found };
    // As nodes do that answer a filter for a block that they do not know.
    const isLog = ({ blockNumber }: { blockNumber: string }) => Number(blockNumber) <= head;
    return { id, result: method === 'eth_getLogs' ? found.filter(isLog) : found };
  };
  const server = createServer(async (request, response) => {
    const lag = view.lag();
    const body = JSON.parse((await request.toArray()).join('')) as Asked | Asked[];
    const answers = await Promise.all([body].flat().map((one) => answer(one, lag)));
    response.writeHead(answers.some(({ error }) => error) ? 429 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const view: View = {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, lag: () => 0, isBusy: false, heads: 0 },
    stop: () => {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
  return view;
}
