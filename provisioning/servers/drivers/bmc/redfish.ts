/** Redfish (DMTF DSP0266), for controllers with one computer system. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { DriverError, type Power } from '../driver.ts';
import type { BmcUser, Controller, Device } from './controller.ts';
import type { BareMetalHost } from './host.ts';

const CALL_SECONDS = 20;
const ANSWER_BYTES_MAX = 1 << 20;

interface Link {
  '@odata.id': string;
}
interface System extends Link {
  PowerState?: string;
  VirtualMedia?: Link;
  Links?: { ManagedBy?: Link[] };
  Actions?: { '#ComputerSystem.Reset'?: { target?: string; 'ResetType@Redfish.AllowableValues'?: string[] } };
}
/** A drive for images of URLs (DSP0268, VirtualMedia). */
interface Medium {
  Image?: string | null;
  Inserted?: boolean;
  MediaTypes?: string[];
  Actions?: Record<'#VirtualMedia.InsertMedia' | '#VirtualMedia.EjectMedia', { target?: string } | undefined>;
}
interface Account {
  Id?: string;
  UserName?: string;
  RoleId?: string;
  Enabled?: boolean;
}
const ACCOUNTS = '/redfish/v1/AccountService/Accounts';
interface Answer {
  status: number;
  etag: string | undefined;
  body: unknown;
}

export class RedfishController implements Controller {
  readonly #host: BareMetalHost;
  constructor(host: BareMetalHost) {
    this.#host = host;
  }

  async power(signal: AbortSignal): Promise<Power> {
    const { PowerState } = (await this.#system(signal)).system;
    // During a change the machine still has its old state.
    if (PowerState === 'On' || PowerState === 'PoweringOff') return 'on';
    if (PowerState === 'Off' || PowerState === 'PoweringOn') return 'off';
    throw new DriverError('unreachable', `The controller of ${this.#host.name} did not report its power.`);
  }

  on(signal: AbortSignal): Promise<void> {
    return this.#reset(['On', 'ForceOn'], 'on', signal);
  }

  off(signal: AbortSignal): Promise<void> {
    return this.#reset(['ForceOff'], 'off', signal);
  }

  shutDown(signal: AbortSignal): Promise<void> {
    return this.#reset(['GracefulShutdown', 'PushPowerButton', 'ForceOff'], 'off', signal);
  }

  async bootFrom(device: Device, signal: AbortSignal, medium?: string): Promise<void> {
    if (this.#host.boot === 'MEDIUM') await this.#insert(medium, signal);
    const { system, etag } = await this.#system(signal);
    const network = medium ? 'Cd' : 'Pxe';
    const Boot = {
      BootSourceOverrideEnabled: 'Once',
      BootSourceOverrideTarget: device === 'PXE' ? network : 'Hdd',
      ...(this.#host.firmware && { BootSourceOverrideMode: this.#host.firmware === 'UEFI' ? 'UEFI' : 'Legacy' }),
    };
    const { status } = await this.#call('PATCH', system['@odata.id'], signal, { Boot }, etag);
    if (status >= 400) throw this.#refused('the boot override', status);
  }

  async hasMedium(signal: AbortSignal): Promise<boolean> {
    return (await this.#medium(signal)) !== undefined;
  }

  async users(signal: AbortSignal): Promise<BmcUser[] | undefined> {
    const { status, body } = await this.#call('GET', ACCOUNTS, signal);
    if (status === 404 || status === 405 || status === 501) return undefined;
    if (status !== 200) throw this.#refused('the list of accounts', status);
    const users: BmcUser[] = [];
    for (const { '@odata.id': id } of (body as { Members?: Link[] }).Members ?? []) {
      const { UserName, RoleId = '', Enabled } = (await this.#get(id, signal)).body as Account;
      const own = UserName === this.#host.bmc.user;
      if (UserName && Enabled !== false) users.push({ id, name: UserName, privilege: RoleId, own });
    }
    return users;
  }

  async disable({ id }: BmcUser, signal: AbortSignal): Promise<void> {
    const { etag } = await this.#get(id, signal);
    if ((await this.#call('PATCH', id, signal, { Enabled: false }, etag)).status < 400) return;
    const { status } = await this.#call('DELETE', id, signal, undefined, etag);
    if (status >= 400) throw this.#refused(`the end of the account ${id}`, status);
  }

  /** Ejects the present image, and inserts the given one. */
  async #insert(Image: string | undefined, signal: AbortSignal): Promise<void> {
    const medium = await this.#medium(signal);
    const insert = medium?.Actions?.['#VirtualMedia.InsertMedia']?.target;
    const eject = medium?.Actions?.['#VirtualMedia.EjectMedia']?.target;
    if (!insert)
      throw new DriverError('failed', `The controller of ${this.#host.name} has no virtual media for CD images.`);
    if (eject && (medium?.Inserted || medium?.Image)) await this.#call('POST', eject, signal, {});
    if (!Image) return;
    const { status } = await this.#call('POST', insert, signal, { Image });
    if (status >= 400) throw this.#refused('the insertion of boot.iso', status);
  }

  /** The first virtual drive that takes CD images. Older controllers have it in their manager, newer ones in the system. */
  async #medium(signal: AbortSignal): Promise<Medium | undefined> {
    const { system } = await this.#system(signal);
    let media = system.VirtualMedia;
    const manager = system.Links?.ManagedBy?.[0];
    if (!media && manager) media = ((await this.#get(manager['@odata.id'], signal)).body as System).VirtualMedia;
    if (!media) return undefined;
    for (const member of ((await this.#get(media['@odata.id'], signal)).body as { Members?: Link[] }).Members ?? []) {
      const medium = (await this.#get(member['@odata.id'], signal)).body as Medium;
      const isCd = medium.MediaTypes?.some((type) => type === 'CD' || type === 'DVD');
      if (isCd && medium.Actions?.['#VirtualMedia.InsertMedia']?.target) return medium;
    }
    return undefined;
  }

  /** Sends the first kind of reset that the controller has. A refusal is no error if the power is as wanted. */
  async #reset(kinds: string[], want: Power, signal: AbortSignal): Promise<void> {
    const { system } = await this.#system(signal);
    const reset = system.Actions?.['#ComputerSystem.Reset'];
    const known = reset?.['ResetType@Redfish.AllowableValues'];
    const ResetType = kinds.find((kind) => !known || known.includes(kind));
    if (!reset?.target || !ResetType)
      throw new DriverError(
        'failed',
        `The controller of ${this.#host.name} has no reset of these kinds: ${kinds.join(', ')}.`,
      );
    const { status } = await this.#call('POST', reset.target, signal, { ResetType });
    if (status >= 400 && (await this.power(signal)) !== want) throw this.#refused(ResetType, status);
  }

  async #system(signal: AbortSignal): Promise<{ system: System; etag: string | undefined }> {
    const { Members } = (await this.#get('/redfish/v1/Systems', signal)).body as { Members?: System[] };
    const path = Members?.[0]?.['@odata.id'];
    if (!path) throw new DriverError('unreachable', `The controller of ${this.#host.name} has no system.`);
    const { body, etag } = await this.#get(path, signal);
    return { system: { ...(body as System), '@odata.id': path }, etag };
  }

  async #get(path: string, signal: AbortSignal): Promise<Answer> {
    const answer = await this.#call('GET', path, signal);
    if (answer.status === 200 && answer.body && typeof answer.body === 'object') return answer;
    throw new DriverError(
      'unreachable',
      `The controller of ${this.#host.name} answered ${answer.status} to GET ${path}.`,
    );
  }

  #refused(what: string, status: number) {
    const code = status >= 500 || status === 401 || status === 403 ? 'unreachable' : 'failed';
    return new DriverError(code, `The controller of ${this.#host.name} answered ${status} to ${what}.`);
  }

  /** Calls a path that the controller has named. Paths to other origins are refused. */
  async #call(method: string, path: string, signal: AbortSignal, body?: object, etag?: string): Promise<Answer> {
    const { name, bmc } = this.#host;
    try {
      const url = new URL(path, bmc.address);
      if (url.origin !== new URL(bmc.address).origin) throw new Error('The path leads to another origin.');
      const headers = {
        accept: 'application/json',
        authorization: `Basic ${Buffer.from(`${bmc.user}:${bmc.password}`).toString('base64')}`,
        ...(body && { 'content-type': 'application/json' }),
        ...(etag && { 'if-match': etag }),
      };
      const patience = AbortSignal.any([signal, AbortSignal.timeout(CALL_SECONDS * 1000)]);
      return await exchange(url, { method, headers, certificate: bmc.certificate, signal: patience }, body);
    } catch (error) {
      signal.throwIfAborted();
      const reason = (error as NodeJS.ErrnoException).code ?? 'no answer';
      throw new DriverError('unreachable', `The controller of ${name} is unreachable: ${reason}.`);
    }
  }
}

interface Request {
  method: string;
  headers: Record<string, string>;
  certificate: string | undefined;
  signal: AbortSignal;
}

/** Sends a request. `fetch` cannot trust a self-signed certificate of a controller. */
function exchange(url: URL, { certificate, ...options }: Request, body: object | undefined): Promise<Answer> {
  // The operator has pinned the certificate, so its name does not matter.
  const trust = certificate && { ca: certificate, checkServerIdentity: () => undefined };
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, { ...options, ...trust }, async (response) => {
      try {
        let text = '';
        for await (const chunk of response.setEncoding('utf8')) {
          text += chunk;
          if (text.length > ANSWER_BYTES_MAX) throw new Error('The answer is too long.');
        }
        resolve({ status: response.statusCode!, etag: response.headers.etag, body: parsed(text) });
      } catch (error) {
        reject(error);
      }
    });
    // Without a listener, Node closes the connection and sends no event. The next bytes may be no TLS.
    request.on('upgrade', (_, socket) => {
      socket.on('error', () => {}).destroy();
      reject(new Error('The server changed the protocol.'));
    });
    request.on('error', reject);
    request.end(body && JSON.stringify(body));
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
