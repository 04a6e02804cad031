import { List } from './pages.ts';
import { Servers } from './servers.ts';
import { TopUps } from './top-ups.ts';
import { type Answer, type CallOptions, type Input, type OperationName, type Options, Transport } from './transport.ts';

/** The operations whose answer is a page of a list. */
type ListName = {
  [Name in OperationName]: Answer<Name> extends { data: unknown[]; has_more: boolean } ? Name : never;
}[OperationName];
type Entry<Name extends ListName> = Answer<Name> extends { data: Array<infer T> } ? T : never;
type Filter<Name extends ListName> = Omit<Input<Name>, 'cursor'>;

/**
 * A client of Freehold.
 * @example
 * const freehold = new Freehold({ url: 'https://example.org', apiKey: 'svc_live_…' });
 * const server = await (await freehold.servers.order({ service_code: 'vps-1' })).ready();
 */
export class Freehold {
  readonly #transport: Transport;
  readonly servers: Servers;
  readonly topUps: TopUps;

  constructor(options: Options = {}) {
    this.#transport = new Transport(options);
    this.servers = new Servers(this.#transport);
    this.topUps = new TopUps(this.#transport);
  }

  /** Calls an operation by its name in the OpenAPI document. @throws FreeholdError */
  call<Name extends OperationName>(name: Name, input: Input<Name>, options?: CallOptions): Promise<Answer<Name>> {
    return this.#transport.call(name, input, options);
  }

  /** Sends any call, such as `api('GET', '/v1/account')`. @throws FreeholdError */
  api(method: string, path: string, body?: object, options?: CallOptions): Promise<unknown> {
    return this.#transport.send(method, path, body, options);
  }

  readonly account = {
    /** Makes an account. Its tokens are in the answer, so make an API key with them. */
    register: this.#one('Register'),
    login: this.#one('Login'),
    loginTotp: this.#one('LoginTotp'),
    get: this.#none('GetAccount'),
    balance: this.#none('GetBalance'),
    /** The bookings of a period. */
    usage: this.#list('GetUsage'),
    auditLog: this.#list('GetAuditLog'),
    changePassword: this.#one('ChangePassword'),
    sessions: this.#list('ListSessions'),
    revokeSession: (tokenId: string, options?: CallOptions) =>
      this.call('RevokeSession', { token_id: tokenId }, options),
    /** Begins a second factor. `enableTotp` completes it with a code of its secret. */
    setupTotp: this.#one('SetupTotp'),
    /** Its answer has the recovery codes, once. */
    enableTotp: this.#one('EnableTotp'),
    /** Replaces the recovery codes. */
    newRecoveryCodes: this.#one('NewRecoveryCodes'),
    disableTotp: this.#one('DisableTotp'),
  };
  readonly apiKeys = {
    create: this.#one('CreateApiKey'),
    list: this.#list('ListApiKeys'),
    revoke: (keyId: string, options?: CallOptions) => this.call('RevokeApiKey', { key_id: keyId }, options),
  };
  readonly sshKeys = {
    add: this.#one('AddSshKey'),
    list: this.#list('ListSshKeys'),
    get: (id: string, options?: CallOptions) => this.call('GetSshKey', { id }, options),
    delete: (id: string, options?: CallOptions) => this.call('DeleteSshKey', { id }, options),
  };
  readonly webhooks = {
    create: this.#one('CreateWebhook'),
    list: this.#list('ListWebhooks'),
    /** Sends `webhook.test`, and answers whether the receiver took it. */
    test: (id: string, options?: CallOptions) => this.call('TestWebhook', { id }, options),
    /** Makes a new secret. The old one signs beside it for a day. */
    rotateSecret: (id: string, input: Omit<Input<'RotateWebhookSecret'>, 'id'> = {}, options?: CallOptions) =>
      this.call('RotateWebhookSecret', { ...input, id }, options),
    delete: (id: string, options?: CallOptions) => this.call('DeleteWebhook', { id }, options),
    /** The types of events, each with an example of its message. */
    events: this.#list('ListWebhookEvents'),
    /** The deliveries to a webhook, newest first. */
    deliveries: (
      id: string,
      filter: Omit<Input<'ListWebhookDeliveries'>, 'id' | 'cursor'> = {},
      options?: CallOptions,
    ) => this.#list('ListWebhookDeliveries')({ ...filter, id }, options),
    /** Sends a delivery again. */
    redeliver: (id: string, deliveryId: string, options?: CallOptions) =>
      this.call('RedeliverWebhook', { id, delivery_id: deliveryId }, options),
  };
  readonly catalog = {
    get: this.#none('GetCatalog'),
    item: (code: string, options?: CallOptions) => this.call('GetCatalogItem', { code }, options),
    coins: this.#list('ListCoins'),
    bonusTiers: this.#list('ListBonusTiers'),
  };
  readonly messages = {
    write: this.#one('WriteMessage'),
    list: this.#list('ListMessages'),
    markRead: (id: string, options?: CallOptions) => this.call('MarkMessageRead', { id }, options),
  };
  readonly transparency = {
    canary: this.#none('GetCanary'),
    status: this.#none('GetStatus'),
    peering: this.#none('GetPeering'),
  };

  #one<Name extends OperationName>(name: Name) {
    return (input: Input<Name>, options?: CallOptions) => this.call(name, input, options);
  }

  #none<Name extends OperationName>(name: Name) {
    return (options?: CallOptions) => this.call(name, {} as Input<Name>, options);
  }

  #list<Name extends ListName>(name: Name) {
    return (filter: Filter<Name> = {} as Filter<Name>, options?: CallOptions) =>
      new List<Entry<Name>>((cursor) => {
        const input = { ...filter, ...(cursor && { cursor }) } as Input<Name>;
        return this.call(name, input, options) as Promise<never>;
      });
  }
}
