/** A stand-in for monero-wallet-rpc and monerod with answers of the test, behind a Digest login. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export const ADDRESS = `4${'A'.repeat(94)}`;
const md5 = (text: string) => createHash('md5').update(text).digest('hex');

export class WalletRpc {
  url = '';
  /** Subaddresses, the primary address first. */
  addresses = [ADDRESS];
  canSpend = false;
  height = 100;
  daemonHeight = 100;
  synchronized = true;
  /** The time of the newest block. */
  newestAt = new Date();
  delayMs = 0;
  transfers: { in?: object[]; pool?: object[] } = {};
  /** The called methods, in order. */
  calls: string[] = [];
  /** The errors of methods, instead of their answers. */
  errors: Record<string, { code: number; message: string }> = {};
  readonly #login: string | undefined;
  /** As with Monero, a nonce belongs to one connection. */
  readonly #nonces = new WeakMap<object, string>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  /** @param login `user:password` */
  constructor(login?: string) {
    this.#login = login;
  }

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
    return this;
  }

  /** Closes all connections. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((done) => this.#server.close(done));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (!this.#admits(request)) {
      const nonce = randomBytes(8).toString('base64');
      this.#nonces.set(request.socket, nonce);
      const challenge = (algorithm: string) =>
        `Digest qop="auth",algorithm=${algorithm},realm="monero-rpc",nonce="${nonce}",stale=false`;
      response.writeHead(401, { 'www-authenticate': [challenge('MD5-sess'), challenge('MD5')] }).end();
      return;
    }
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
    this.calls.push(method);
    if (this.delayMs) await new Promise((resume) => setTimeout(resume, this.delayMs).unref());
    const watchOnly = { code: -29, message: 'The wallet is watch-only. Cannot retrieve spend key.' };
    const error = this.errors[method] ?? (method === 'query_key' && !this.canSpend ? watchOnly : undefined);
    const answer = { id, ...(error ? { error } : { result: this.#result(method, params) }) };
    // A number may have more digits than a double.
    const text = JSON.stringify(answer, (_, value) => (typeof value === 'bigint' ? `big:${value}` : value));
    response.end(text.replace(/"big:(\d+)"/g, '$1'));
  }

  #admits({ headers: { authorization = '' }, socket, method }: IncomingMessage): boolean {
    if (this.#login === undefined) return true;
    const [, user, password] = /^([^:]*):(.*)$/.exec(this.#login)!;
    const part = (name: string) => new RegExp(`\\b${name}="?([^",]*)"?`).exec(authorization)?.[1] ?? '';
    if (part('nonce') === '' || part('nonce') !== this.#nonces.get(socket)) return false;
    const [secret, request] = [md5(`${user}:monero-rpc:${password}`), md5(`${method}:${part('uri')}`)];
    return part('response') === md5([secret, part('nonce'), part('nc'), part('cnonce'), 'auth', request].join(':'));
  }

  #result(method: string, params: { address_index?: number[]; min_height?: number }): object {
    const { addresses } = this;
    switch (method) {
      case 'get_address':
        return {
          addresses: params.address_index!.map((index) => ({ address: addresses[index], address_index: index })),
        };
      case 'query_key':
        return { key: 'f'.repeat(64) };
      case 'create_address': {
        const index = addresses.push(`8${'B'.repeat(93)}${addresses.length}`) - 1;
        return { address: addresses[index], address_index: index };
      }
      case 'get_height':
        return { height: this.height };
      case 'get_info':
        return { height: this.daemonHeight, synchronized: this.synchronized };
      case 'get_last_block_header':
        return { block_header: { timestamp: Math.floor(this.newestAt.getTime() / 1000) } };
      default:
        return method === 'get_transfers' ? this.#transfersAbove(params.min_height ?? -1) : {};
    }
  }

  #transfersAbove(height: number) {
    const above = (transfer: { height?: number }) => (transfer.height ?? Number.POSITIVE_INFINITY) > height;
    return { ...this.transfers, ...(this.transfers.in && { in: this.transfers.in.filter(above) }) };
  }
}
