/** The bounds of the internal listener, with small values. */
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { type InternalOptions, internalListener } from '../../../facades/graphql/listener.ts';
import { SOCKETS } from '../../../facades/graphql/sockets.ts';
import type { Context, Viewer } from '../../../schema/index.ts';
import { eventually } from '../../setup/freehold.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Starts a listener that takes the id of an account or an operator for a credential. */
async function started(options: Partial<InternalOptions> = {}) {
  const faults: unknown[] = [];
  const { server, closeSockets } = internalListener({
    authenticate: async (authorization) => {
      const id = authorization?.slice('Bearer '.length);
      const accountId = id?.startsWith('acct_') ? id : null;
      return id ? ({ accountId, credentialId: id, kind: 'api_key', scopes: new Set() } as unknown as Viewer) : null;
    },
    admit: async () => {},
    contextOf: (request) => ({ ...request, db: {} }) as Context,
    onCredentialEnd: () => ({ checked: Promise.resolve(), forget: () => {} }),
    onError: (fault) => faults.push(fault),
    ready: async () => true,
    ...options,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    closeSockets();
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, faults };
}

describe('The WebSockets of the internal listener', () => {
  const SOCKETS_OF_TEST = { max: 10, reserved: 4 };
  const stranger = async (port: number) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
    socket.on('error', () => {});
    await once(socket, 'open');
    onTestFinished(() => socket.terminate());
    return socket;
  };
  /** Shows a credential. @returns the socket after its acknowledgement, or the code by which the service closed it */
  const admitted = async (port: number, id: string) => {
    const socket = await stranger(port);
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${id}` } }));
    return Promise.race([once(socket, 'message').then(() => socket), once(socket, 'close').then(([code]) => code)]);
  };

  it('close the oldest one without a credential when there are too many', async () => {
    const { port } = await started({ sockets: SOCKETS_OF_TEST });
    const strangers = [];
    for (let i = 0; i < SOCKETS_OF_TEST.max; i++) strangers.push(await stranger(port));
    const closed = once(strangers[0]!, 'close');
    expect(await admitted(port, 'operator')).toBeInstanceOf(WebSocket);
    // Without a credential it would close by itself later, with another code.
    expect((await closed)[0]).toBe(1006);
    expect(strangers.slice(1).every(({ readyState }) => readyState === WebSocket.OPEN)).toBe(true);
  });

  it('are 10,100 by default, of which accounts leave 100 free', async () => {
    expect(SOCKETS).toEqual({ max: 10_100, reserved: 100 });
    const { port } = await started();
    const more = SOCKETS_OF_TEST.max + 1;
    for (let i = 0; i < more; i++) expect(await admitted(port, `acct_${i}`)).toBeInstanceOf(WebSocket);
  });

  it('leave some places to the operator when accounts take all others', async () => {
    const { port } = await started({ sockets: SOCKETS_OF_TEST });
    const all = [];
    for (let i = 0; i < SOCKETS_OF_TEST.max - SOCKETS_OF_TEST.reserved; i++)
      all.push(await admitted(port, `acct_${i}`));
    expect(all.every((socket) => socket instanceof WebSocket)).toBe(true);
    expect(await admitted(port, 'acct_more')).toBe(1013);
    expect(await admitted(port, 'operator')).toBeInstanceOf(WebSocket);
    all[0].close();
    await eventually(async () => (await admitted(port, 'acct_more')) instanceof WebSocket);
  });

  it('close when they read no answers, and too much waits for all of them', async () => {
    const { port } = await started({ unread: { perReader: 64 * MIB, perProcess: 4 * MIB, stalledMs: 300 } });
    const types = Array.from({ length: 20 }, (_, n) => `t${n}: types { name description fields { name description } }`);
    const query = `{ __schema { ${types.join(' ')} } }`;
    const closed = new Set<WebSocket>();
    const sockets: WebSocket[] = [];
    for (let i = 0; i < 8; i++) sockets.push((await admitted(port, `acct_${i}`)) as WebSocket);
    for (const socket of sockets) {
      socket.on('close', () => closed.add(socket)).pause();
      // The system takes the first answers for itself.
      for (let id = 0; id < 5; id++)
        socket.send(JSON.stringify({ id: `${id}`, type: 'subscribe', payload: { query } }));
    }
    // A paused socket notices a reset only when it writes.
    await eventually(async () => {
      for (const socket of sockets) if (socket.readyState === WebSocket.OPEN) socket.pong();
      return closed.size >= 4;
    }, 20);
  });

  it('are at most 64 of an account', async () => {
    const { port } = await started();
    for (let i = 0; i < 64; i++) expect(await admitted(port, 'acct_a')).toBeInstanceOf(WebSocket);
    expect(await admitted(port, 'acct_a')).toBe(1013);
    expect(await admitted(port, 'acct_b')).toBeInstanceOf(WebSocket);
  });

  it('are at most 64 of a named operator, so that others get some', async () => {
    const { port } = await started();
    for (let i = 0; i < 64; i++) expect(await admitted(port, 'opr_a')).toBeInstanceOf(WebSocket);
    expect(await admitted(port, 'opr_a')).toBe(1013);
    expect(await admitted(port, 'opr_b')).toBeInstanceOf(WebSocket);
  });

  /** A ping whose content has a thousand values. */
  const WIDE = JSON.stringify({
    type: 'ping',
    payload: Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`k${n}`, n])),
  });

  it('end with a large message before the credential, and the library never reads it', async () => {
    const { port } = await started();
    const socket = await stranger(port);
    const received: unknown[] = [];
    socket.on('message', (message) => received.push(message));
    socket.send(WIDE);
    expect((await once(socket, 'close'))[0]).toBe(1006);
    expect(received).toEqual([]);
  });

  it('of an account share a count of messages and of their KiB in a second', async () => {
    const { port } = await started();
    const [first, second, other] = await Promise.all(['acct_a', 'acct_a', 'acct_b'].map((id) => admitted(port, id)));
    const sockets = [first, second, other] as WebSocket[];
    const isOpen = ({ readyState }: WebSocket) => readyState === WebSocket.OPEN;
    /** Sends what one socket may send in a second. Waits for the answers or for the end of the socket. */
    const fill = async (socket: WebSocket) => {
      let answers = 0;
      const count = () => answers++;
      socket.on('message', count);
      for (let n = 0; n < 60; n++) socket.send(WIDE);
      await eventually(async () => answers === 60 || !isOpen(socket));
      socket.off('message', count);
    };
    // A slow machine may read the messages in two seconds, and then the caller is within its limit.
    await eventually(async () => {
      await setTimeout(1_000 - (performance.now() % 1_000));
      await Promise.all(sockets.map(fill));
      return !isOpen(first) || !isOpen(second);
    }, 60);
    expect(other.readyState).toBe(WebSocket.OPEN);
  });

  it.each(['ping', 'pong'] as const)('take no flood of frames that are a %s', async (frame) => {
    const { port } = await started();
    const socket = await admitted(port, 'acct_a');
    const content = 'x'.repeat(120);
    for (let n = 0; n < 30_000; n++) socket[frame](content);
    expect((await once(socket, 'close'))[0]).toBe(1006);
  });

  it('take a message of two fragments, and no more of them', async () => {
    const { port } = await started();
    const socket = await admitted(port, 'acct_a');
    socket.send('{"type":', { fin: false });
    socket.send('"ping"}');
    expect(String((await once(socket, 'message'))[0])).toBe('{"type":"pong"}');
    for (let n = 0; n < 3; n++) socket.send('{', { fin: false });
    expect((await once(socket, 'close'))[0]).toBe(1008);
  });
});

describe('The internal listener', () => {
  it('asks at most once a second whether the service is ready', async () => {
    let asked = 0;
    const { url } = await started({ ready: async () => ++asked > 0 });
    const since = performance.now();
    for (let i = 0; i < 30; i++) expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(asked).toBeLessThanOrEqual(1 + Math.floor((performance.now() - since) / 1_000));
  });

  it.each(['[', 'a b', 'x:99999', '%'])('refuses the host %j without a fault', async (host) => {
    const { port, faults } = await started();
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET /graphql HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    socket.destroy();
    expect(faults).toEqual([]);
  });

  it('closes the connection of a client that reads no answer, when too much waits', async () => {
    const { port } = await started({ unread: { perReader: 64 * KIB, stalledMs: 300 } });
    const types = Array.from({ length: 20 }, (_, n) => `t${n}: types { name description fields { name description } }`);
    const body = JSON.stringify({ query: `{ __schema { ${types.join(' ')} } }` });
    const request = [
      'POST /graphql HTTP/1.1',
      'Host: localhost',
      'Authorization: Bearer operator',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ].join('\r\n');
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.pause();
    let closed = false;
    socket.on('close', () => (closed = true));
    socket.write(`${request}\r\n\r\n${body}`.repeat(15));
    // A paused socket notices a reset only when it writes.
    await eventually(async () => {
      if (!closed) socket.write('\r\n');
      return closed;
    });
  });
});
