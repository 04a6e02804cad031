/** A socket on which a test answers in place of an engine. */
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

/** Listens until the test ends. @returns the path of the socket */
export async function listen(
  answer: (request: string, response: ServerResponse, body: string, url: URL) => void,
): Promise<string> {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const socketPath = join(folder, 'engine.socket');
  const server = createServer(async (request, response) => {
    const { method, url } = request;
    answer(
      `${method} ${url!.split('?')[0]}`,
      response,
      Buffer.concat(await request.toArray()).toString(),
      new URL(url!, 'http://engine'),
    );
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return socketPath;
}
