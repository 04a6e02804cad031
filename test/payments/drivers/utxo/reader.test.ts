/** The reading of a mempool. The node is a stub with the answers of Bitcoin Core, or of Litecoin Core. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { CHAINS } from '../../../../provisioning/payments/drivers/utxo/chains.ts';
import { UtxoReader } from '../../../../provisioning/payments/drivers/utxo/reader.ts';
import { finderOf } from '../../chains/chain.ts';

const { signal } = new AbortController();
const chain = CHAINS['bitcoin-regtest']!;

interface Asked {
  id: number;
  method: string;
  params: unknown[];
}

/** Serves a node with this mempool. @param outputsOf the outputs of a transaction. @returns its reader */
async function readerOver(ids: readonly string[], outputsOf: (txid: string) => object[]): Promise<UtxoReader> {
  const answer = ({ method, params }: Asked): unknown => {
    if (method === 'getblockhash') return chain.genesis;
    if (method === 'getrawmempool') return ids;
    const txid = params[0] as string;
    return { txid, vout: outputsOf(txid) };
  };
  const server = createServer(async (request, response) => {
    const body = [JSON.parse((await request.toArray()).join(''))].flat() as Asked[];
    response.end(JSON.stringify(body.map((one) => ({ id: one.id, result: answer(one), error: null }))));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return new UtxoReader({ network: 'bitcoin', chain, url, credentials: () => 'a:b' });
}

it('a mempool of 12,000 transactions is complete at the third poll, and no poll reads a transaction twice', async () => {
  const ids = Array.from({ length: 12_000 }, (_, n) => n.toString(16).padStart(64, '0'));
  const asked = new Map<string, number>();
  const reader = await readerOver(ids, (txid) => {
    asked.set(txid, (asked.get(txid) ?? 0) + 1);
    return [{ n: 0, value: 0.5, scriptPubKey: { address: txid === ids.at(-1) ? 'ours' : 'other' } }];
  });
  const polls = [];
  for (let poll = 0; poll < 4; poll++) polls.push(await reader.announced(finderOf(['ours']), signal));
  expect(polls.map(({ isComplete }) => isComplete)).toEqual([false, false, true, true]);
  expect(polls.map(({ payments }) => payments.length)).toEqual([0, 0, 1, 1]);
  expect(new Set(asked.values())).toEqual(new Set([1]));
});

it('an output of MWEB has no address, and hides no other output', async () => {
  const reader = await readerOver(['a1'], () => [
    { ismweb: true, output_id: '0f' },
    { ismweb: false, n: 1, value: 0.5, scriptPubKey: { addresses: ['ours'] } },
  ]);
  const { payments, isComplete } = await reader.announced(finderOf(['ours']), signal);
  expect([payments.map(({ position, units }) => [position, units]), isComplete]).toEqual([[[1, 50_000_000n]], true]);
});
