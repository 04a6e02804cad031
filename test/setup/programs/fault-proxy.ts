/** A TCP proxy before PostgreSQL that causes the wanted faults and counts the passing queries. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** The fault of a COMMIT: none, the loss of its answer, or the loss of the connection before it. */
export type Fault = 'none' | 'lose answer' | 'cut before';

export interface FaultProxy {
  /** The URL of the database through the proxy. */
  url: string;
  lostAnswers: number;
  cutBefore: number;
  /** Statements that the service has sent. */
  statements: number;
  close(): Promise<void>;
}

/** @param fault called at each COMMIT */
export async function startFaultProxy(databaseUrl: string, fault: () => Fault = () => 'none'): Promise<FaultProxy> {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const database = connect(Number(port || 5432), hostname);
    let losing = false;
    for (const socket of [client, database]) {
      sockets.add(socket.setNoDelay());
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        database.destroy();
      });
    }
    client.on('data', (data) => {
      proxy.statements += statementsIn(data);
      const what = isCommit(data) ? fault() : 'none';
      if (what === 'cut before') {
        proxy.cutBefore++;
        client.resetAndDestroy();
        return;
      }
      losing ||= what === 'lose answer';
      database.write(data);
    });
    database.on('data', (data) => {
      if (!losing) return client.write(data);
      // The database has answered, so it has committed.
      proxy.lostAnswers++;
      client.resetAndDestroy();
      return undefined;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const through = new URL(databaseUrl);
  through.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const proxy: FaultProxy = {
    url: through.href,
    lostAnswers: 0,
    cutBefore: 0,
    statements: 0,
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
  return proxy;
}

/** A simple query (Q) of the protocol, whose text is COMMIT. */
const isCommit = (data: Buffer): boolean => data[0] === 0x51 && data.toString('latin1', 5, 11) === 'COMMIT';

/** Simple queries (Q) and parses (P), as far as they begin a packet: the client sends one at a time. */
const statementsIn = (data: Buffer): number => (data[0] === 0x51 || data[0] === 0x50 ? 1 : 0);
