/** `node bench/facades/public.ts`: the processor time of the service for its public answers, whole and as 304. */
import assert from 'node:assert/strict';
import { newFolder, removeFolder, spawnService } from '../../test/setup/spawn.ts';
import { print } from '../figure.ts';
import { cpuSeconds } from '../report.ts';
import { run, stops } from '../run.ts';

const PATHS = ['catalog', 'billing/coins', 'transparency/canary', 'transparency/status'];
const REQUESTS = 3_000;
/** Milliseconds of processor time for an answer. */
const BAR = 1;

await run(async () => {
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  const limits = { RATE_LIMIT_PUBLIC_PER_MINUTE: '1000000', RATE_LIMIT_STORE: 'memory' };
  const service = await spawnService({ DATA_DIR: folder, ROLES: 'api,worker', ...limits });
  stops.push(service.stop);
  for (const path of PATHS) {
    const ask = async (headers: Record<string, string>, status: number): Promise<void> => {
      const answer = await fetch(`${service.url}/v1/${path}`, {
        headers: { 'accept-encoding': 'identity', ...headers },
      });
      await answer.arrayBuffer();
      assert.equal(answer.status, status);
    };
    for (const [form, headers, status] of [
      ['whole', {}, 200],
      ['as 304', { 'if-none-match': '*' }, 304],
    ] as const) {
      for (let n = 0; n < REQUESTS / 3; n++) await ask(headers, status);
      const before = cpuSeconds(service.process.pid!);
      for (let n = 0; n < REQUESTS; n++) await ask(headers, status);
      const ms = ((cpuSeconds(service.process.pid!) - before) * 1_000) / REQUESTS;
      print({ name: `ms of processor time for GET /v1/${path}, ${form}`, ratio: ms, bar: BAR });
    }
  }
});
