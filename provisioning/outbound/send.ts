/** The program of the thread of outbound calls. It sends one HTTP request a call, on a connection of its own. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { parentPort } from 'node:worker_threads';
import { connectTo } from './connection.ts';
import type { Answer, Instruction, Reply, Sending, SendingError } from './thread.ts';

const aborts = new Map<number, AbortController>();

parentPort!.on('message', async (instruction: Instruction) => {
  const { id } = instruction;
  if ('abort' in instruction) return aborts.get(id)?.abort();
  const abort = new AbortController();
  aborts.set(id, abort);
  const signal = AbortSignal.any([AbortSignal.timeout(instruction.sending.limitMs), abort.signal]);
  const result = await exchange(instruction.sending, signal).catch(reasonOf);
  aborts.delete(id);
  parentPort!.postMessage({ id, result } satisfies Reply);
});

function exchange(sending: Sending, signal: AbortSignal): Promise<Answer> {
  const { method, address, account, headers, body, answerBytesMax } = sending;
  return new Promise((done, fail) => {
    const url = new URL(sending.url);
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method,
      createConnection: () => connectTo(url, address, account, answerBytesMax),
      maxHeaderSize: 8192,
      signal,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        connection: 'close',
      },
    });
    // Without a listener, Node closes the connection and sends no event. The next bytes may be no TLS.
    request.on('upgrade', (_, socket) => {
      socket.on('error', () => {}).destroy();
      fail(new Error('The server changed the protocol.'));
    });
    // No answer may hold a call beyond its limit.
    let end = () => fail(signal.reason);
    signal.addEventListener('abort', () => end(), { once: true });
    request.on('error', fail).on('response', (response) => {
      // A kept piece of one byte would take 300 bytes, and a receiver can send each byte alone.
      const kept = Buffer.alloc(answerBytesMax);
      let bytes = 0;
      const finish = (complete: boolean) => {
        response.destroy();
        const answer = kept.subarray(0, Math.min(bytes, answerBytesMax));
        done({ status: response.statusCode!, headers: response.headers, body: answer, complete });
      };
      end = () => finish(false);
      response.on('data', (chunk: Buffer) => {
        chunk.copy(kept, bytes);
        bytes += chunk.length;
        if (bytes > answerBytesMax) finish(false);
      });
      response.on('end', () => finish(true)).on('error', () => finish(false));
    });
    request.end(body);
  });
}

function reasonOf(error: NodeJS.ErrnoException): SendingError {
  return /CERT|^ERR_TLS|SELF_SIGNED|UNABLE_TO/.test(error.code ?? '') ? 'tls' : 'unreachable';
}
