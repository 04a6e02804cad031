/** A REST client. It picks an API process for each request, as a load balancer does. */
import { ApiClient, type ApiClientOptions, PATIENCE_MS } from './api-client.ts';
import { type CallName, callOf } from './calls.ts';
import type { Chance } from './chance.ts';
import type { Arguments, Reply } from './measurements.ts';

export interface RestOptions extends ApiClientOptions {
  chance: Chance;
  /** The addresses of the API processes, without /v1. */
  urls: readonly string[];
  credential?: string;
  /** Gets a new credential after the service revoked the present one. */
  renew?: () => Promise<string>;
}

export class RestClient extends ApiClient {
  credential: string | undefined;
  readonly #options: RestOptions;

  constructor(options: RestOptions) {
    super(options);
    this.#options = options;
    this.credential = options.credential;
  }

  protected nameOf(call: CallName): string {
    return callOf(call).at!;
  }

  protected async send(call: CallName, args: Arguments, key: string | undefined): Promise<Reply> {
    const [method, template] = callOf(call).at!.split(' ') as [string, string];
    const rest = { ...args };
    const path = template.replace(/\{(\w+)\}/g, (_, name) => {
      const value = String(rest[name]);
      delete rest[name];
      return encodeURIComponent(value);
    });
    const inBody = method === 'POST' || method === 'PATCH';
    const query = inBody ? '' : `?${new URLSearchParams(rest as Record<string, string>)}`;
    const response = await fetch(this.#options.chance.pick(this.#options.urls) + path + query, {
      method,
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: {
        ...(this.credential && { authorization: `Bearer ${this.credential}` }),
        ...(inBody && { 'content-type': 'application/json' }),
        ...(key && { 'idempotency-key': key }),
      },
      ...(inBody && { body: JSON.stringify(rest) }),
    });
    const body = JSON.parse(await response.text());
    if (body.code === 'revoked_credential') this.credential = await this.#options.renew?.();
    return { code: response.ok ? 'ok' : (body.code ?? String(response.status)), body };
  }
}
