/** A server before the service, which knows what each sample sent. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request of a sample. */
export interface Sent {
  method: string;
  path: string;
  body?: unknown;
}
export interface SampleProxy {
  /** The address of the service for a sample. */
  urlOf(sample: number): string;
  sentBy(sample: number): readonly Sent[];
}

/** @param atEnd runs its argument after the tests */
export async function startSampleProxy(publicUrl: string, atEnd: (end: () => void) => void): Promise<SampleProxy> {
  const sent = new Map<number, Sent[]>();
  const sentBy = (sample: number) => sent.get(sample) ?? [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '' } = request;
    const [, sample, rest = ''] = /^\/(\d+)(\/.*)$/.exec(url) ?? [];
    const content = Buffer.concat(chunks);
    const body = content.length ? JSON.parse(content.toString()) : undefined;
    const path = rest.split('?')[0]!;
    sent.set(Number(sample), [...sentBy(Number(sample)), { method, path, ...(body !== undefined && { body }) }]);
    const {
      host: _host,
      connection: _connection,
      'content-length': _length,
      ...headers
    } = request.headers as Record<string, string>;
    const answer = await fetch(publicUrl + rest, { method, headers, ...(content.length && { body: content }) });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(await answer.text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { urlOf: (sample) => `http://127.0.0.1:${port}/${sample}`, sentBy };
}
