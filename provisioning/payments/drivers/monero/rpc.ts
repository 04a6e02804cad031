/** JSON-RPC in the dialect of monerod and monero-wallet-rpc. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type Exchange, JsonRpc } from '../json-rpc.ts';
import { type Challenge, challengeOf, digestOf, type Login } from './digest.ts';

const PATH = '/json_rpc';

export const moneroRpc = (url: string, login?: Login): JsonRpc =>
  new JsonRpc({
    url: String(new URL(PATH, url)),
    batchMax: 1,
    named: true,
    // A double may have too few digits.
    reviver: (key, value, { source }) => (key === 'amount' && typeof value === 'number' ? BigInt(source) : value),
    exchange: exchangeOf(login),
  });

/** Posts over kept connections. With a login it sends one request at a time over one, because a nonce belongs to it. */
function exchangeOf(login: Login | undefined): Exchange {
  const options = { keepAlive: true, maxSockets: login ? 1 : 8 };
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };
  let challenge: Challenge | undefined;
  let count = 0;
  let turn: Promise<unknown> = Promise.resolve();

  /** Sends a request. It sends it again if the server had closed a kept connection, because it then read nothing. */
  const post = async (url: URL, body: string, signal: AbortSignal): Promise<Answer> => {
    signal.throwIfAborted();
    const use = { method: 'POST', path: PATH, count: ++count };
    const headers = {
      'content-type': 'application/json',
      ...(login && challenge && { authorization: digestOf(login, challenge, use) }),
    };
    const answer = await new Promise<IncomingMessage | undefined>((resolve, reject) => {
      const [ask, agent] = [url.protocol === 'https:' ? httpsRequest : httpRequest, agents[url.protocol as 'http:']];
      const request = ask(url, { method: 'POST', agent, headers, signal }, resolve);
      const isStale = (fault: NodeJS.ErrnoException) => request.reusedSocket && fault.code === 'ECONNRESET';
      // Without a listener, Node closes the connection and sends no event. The next bytes may be no TLS.
      request.on('upgrade', (_, socket) => {
        socket.on('error', () => {}).destroy();
        reject(new Error('The server changed the protocol.'));
      });
      request.on('error', (fault) => (isStale(fault) ? resolve(undefined) : reject(fault))).end(body);
    });
    if (!answer) return post(url, body, signal);
    const chunks = (await answer.toArray()) as Buffer[];
    const challenges = answer.headersDistinct['www-authenticate'] ?? [];
    return { status: answer.statusCode!, challenges, text: Buffer.concat(chunks).toString() };
  };

  const asUser = async (url: URL, body: string, signal: AbortSignal): Promise<Answer> => {
    const answer = await post(url, body, signal);
    const next = answer.status === 401 ? challengeOf(answer.challenges) : undefined;
    if (!next) return answer;
    [challenge, count] = [next, 0];
    return post(url, body, signal);
  };

  if (!login) return (url, body, signal) => post(new URL(url), body, signal);
  /** Queues the request. A caller that gives up stops waiting at once. */
  return (url, body, signal) => {
    signal.throwIfAborted();
    const own = turn.then(() => asUser(new URL(url), body, signal));
    turn = own.catch(() => {});
    const givenUp = new Promise<never>((_, fail) => {
      signal.addEventListener('abort', () => fail(signal.reason), { once: true });
    });
    return Promise.race([own, givenUp]);
  };
}

interface Answer {
  status: number;
  challenges: readonly string[];
  text: string;
}
