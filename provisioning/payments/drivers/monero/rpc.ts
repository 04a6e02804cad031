/** JSON-RPC over HTTP, in the dialect of monerod and monero-wallet-rpc. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { RpcError } from '../json-rpc.ts';
import { type Challenge, challengeOf, digestOf, type Login } from './digest.ts';

const PATH = '/json_rpc';

/** A client. With a login it makes one call at a time over one connection, because a nonce belongs to its connection. */
export class MoneroRpc {
  readonly #url: URL;
  readonly #login: Login | undefined;
  readonly #agent: HttpAgent;
  #challenge: Challenge | undefined;
  #count = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(url: string, login?: Login) {
    this.#url = new URL(PATH, url);
    this.#login = login;
    const Agent = this.#url.protocol === 'https:' ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: login ? 1 : 8 });
  }

  /** @throws RpcError, or the error of the connection */
  async call<T>(method: string, params: object, signal: AbortSignal): Promise<T> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: '0', method, params });
    const { status, text } = await (this.#login ? this.#inTurn(body, signal) : this.#post(body, signal));
    if (status !== 200) throw new Error(`${method}: ${this.#url.host} answered ${status}.`);
    const { result, error } = JSON.parse(text, exact as Parameters<typeof JSON.parse>[1]) as {
      result?: T;
      error?: { code: number; message: string };
    };
    if (error) throw new RpcError({ code: error.code, message: `${method}: ${error.message} (${error.code})` });
    return result!;
  }

  /** Queues the call. A caller that gives up stops waiting at once. */
  #inTurn(body: string, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted();
    const turn = this.#turn.then(() => this.#asUser(body, signal));
    this.#turn = turn.catch(() => {});
    const givenUp = new Promise<never>((_, fail) => {
      signal.addEventListener('abort', () => fail(signal.reason), { once: true });
    });
    return Promise.race([turn, givenUp]);
  }

  async #asUser(body: string, signal: AbortSignal): Promise<Reply> {
    const reply = await this.#post(body, signal);
    const challenge = reply.status === 401 ? challengeOf(reply.challenges) : undefined;
    if (!challenge) return reply;
    this.#challenge = challenge;
    this.#count = 0;
    return this.#post(body, signal);
  }

  /** Sends a request. It sends it again if the server had closed a kept connection, because it then read nothing. */
  async #post(body: string, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted();
    const answer = await new Promise<IncomingMessage | undefined>((resolve, reject) => {
      const ask = this.#url.protocol === 'https:' ? httpsRequest : httpRequest;
      const headers = { 'content-type': 'application/json', ...this.#authorization() };
      const request = ask(this.#url, { method: 'POST', agent: this.#agent, headers, signal }, resolve);
      const isStale = (fault: NodeJS.ErrnoException) => request.reusedSocket && fault.code === 'ECONNRESET';
      request.on('error', (fault) => (isStale(fault) ? resolve(undefined) : reject(fault))).end(body);
    });
    if (!answer) return this.#post(body, signal);
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const challenges = answer.headersDistinct['www-authenticate'] ?? [];
    return { status: answer.statusCode!, challenges, text: Buffer.concat(chunks).toString() };
  }

  #authorization(): { authorization?: string } {
    if (!this.#login || !this.#challenge) return {};
    const given = { method: 'POST', path: PATH, count: ++this.#count };
    return { authorization: digestOf(this.#login, this.#challenge, given) };
  }
}

interface Reply {
  status: number;
  challenges: readonly string[];
  text: string;
}

/** Reads amounts as bigint, because a double may have too few digits. */
const exact = (key: string, value: unknown, { source }: { source: string }): unknown =>
  key === 'amount' && typeof value === 'number' ? BigInt(source) : value;
