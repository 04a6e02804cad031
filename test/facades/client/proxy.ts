/** A server between a client and the service, which loses and replaces answers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server between the client and the service. It answers by itself as often as it has answers. */
export async function between(
  publicUrl: string,
  answers: ((forward: () => Promise<Response>) => Promise<Response>)[],
): Promise<{ url: string; keys: (string | undefined)[] }> {
  const keys: (string | undefined)[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    keys.push(request.headers['idempotency-key'] as string | undefined);
    const {
      host: _host,
      connection: _connection,
      'content-length': _length,
      ...headers
    } = request.headers as Record<string, string>;
    const body = chunks.length ? { body: Buffer.concat(chunks) } : {};
    const forward = () => fetch(`${publicUrl}${request.url}`, { method: request.method!, headers, ...body });
    const answer = await (answers.shift() ?? ((send) => send()))(forward).catch(() => undefined);
    if (!answer) return void request.socket.destroy();
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      'retry-after': answer.headers.get('retry-after') ?? '0',
    });
    response.end(await answer.text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, keys };
}
