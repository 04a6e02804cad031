/** A receiver that ends the thread of the outbound calls, or keeps it busy, harms nothing else. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { OutboundThread } from '../../provisioning/outbound/thread.ts';

/** A thread that runs the statements with the `method` of each call. */
const threadOf = (statements: string) =>
  new OutboundThread(
    new URL(
      `data:text/javascript,${encodeURIComponent(`
        import { parentPort } from 'node:worker_threads';
        let count = 0;
        parentPort.on('message', ({ id, sending, abort }) => {
          const answer = (status) => parentPort.postMessage({ id, result: { status, headers: {}, body: new Uint8Array(), complete: true } });
          ${statements}
        });`)}`,
    ),
  );
const send = (thread: OutboundThread, url: string, aborted?: AbortSignal) =>
  thread.send(
    { method: 'GET', url, account: 'acct', address: '127.0.0.1', headers: {}, answerBytesMax: 1, limitMs: 500 },
    aborted,
  );

describe('The thread of the outbound calls', () => {
  it('makes its calls unreachable when it ends, and another one serves the next call', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    const thread = threadOf(
      "if (sending.url === 'break') throw new Error('broken'); if (sending.url === 'good') answer(++count);",
    );
    expect(await send(thread, 'good')).toMatchObject({ status: 1 });
    expect(await Promise.all([send(thread, 'wait'), send(thread, 'break')])).toEqual(['unreachable', 'unreachable']);
    expect(await send(thread, 'good')).toMatchObject({ status: 1 });
    expect(log).toHaveBeenCalledWith(expect.stringContaining('The thread of the outbound calls ended: Error: broken'));
    log.mockRestore();
  });

  it('is replaced when it answers no more, and holds nothing else of the process', async () => {
    const thread = threadOf("if (sending.url === 'stick') for (;;); answer(++count);");
    const stuck = send(thread, 'stick');
    await sleep(100);
    expect(await stuck).toBe('unreachable');
    expect(await send(thread, 'good')).toMatchObject({ status: 1 });
  });

  it('learns of a call that its caller aborts', async () => {
    const thread = threadOf('if (abort) count++; else if (sending.url === "good") answer(count);');
    const abort = new AbortController();
    const waiting = send(thread, 'wait', abort.signal);
    abort.abort(new Error('no longer needed'));
    await expect(waiting).rejects.toThrow('no longer needed');
    expect(await send(thread, 'good')).toMatchObject({ status: 1 });
    await expect(send(thread, 'wait', abort.signal)).rejects.toThrow('no longer needed');
  });
});
