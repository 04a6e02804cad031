/**
 * The part of Redfish (DSP0266) that server controllers have in common: one system, its reset and its boot override. It
 * controls the same QEMU process. Like real controllers, it answers before it has carried out a reset.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

/** A user of the controller; the tests add some, as root on a host could. */
export interface TestUser {
  name: string;
  enabled: boolean;
  /** Default: Administrator. */
  role?: string;
}

interface Options {
  port: number;
  user: string;
  password: string;
  chassis(...what: string[]): string;
  /** Takes the image that was inserted; undefined: it was ejected. Absent: the controller has no virtual media. */
  insert?: (image: string | undefined) => Promise<void>;
  users?: TestUser[];
  /** Whether it lists its users. Default: true. */
  listsUsers?: () => boolean;
  /** Milliseconds from the answer to the end of a reset. */
  delayMs?: number;
  /** Serves plain HTTP if absent. */
  tls?: { cert: string; key: string };
}
const SYSTEM = '/redfish/v1/Systems/1';
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;
const RESET_TYPES = ['On', 'ForceOff', 'GracefulShutdown', 'ForceRestart'];
const TARGETS: Record<string, string> = { Pxe: 'pxe', Cd: 'cd', Hdd: 'disk', None: 'none' };
const MANAGER = '/redfish/v1/Managers/1';
const MEDIA = `${MANAGER}/VirtualMedia`;
const ACCOUNTS = '/redfish/v1/AccountService/Accounts';

export async function startRedfish(options: Options) {
  const { port, user, password, chassis, insert, users = [{ name: options.user, enabled: true }] } = options;
  const { delayMs = 300, tls } = options;
  let image: string | null = null;
  const pending = new Set<NodeJS.Timeout>();
  const state = { version: 1, override: { BootSourceOverrideEnabled: 'Disabled', BootSourceOverrideTarget: 'None' } };
  const isOn = () => chassis('get', 'power').trim() === 'power:1';
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

  const answer = (response: ServerResponse, status: number, body?: object, headers: Record<string, string> = {}) => {
    response.writeHead(status, { ...(body && { 'content-type': 'application/json' }), ...headers });
    response.end(body && JSON.stringify(body));
  };
  const refuse = (response: ServerResponse, status: number, message: string) =>
    answer(response, status, { error: { code: 'Base.1.8.GeneralError', message } });

  const reset = (type: unknown, response: ServerResponse) => {
    if (!RESET_TYPES.includes(type as string)) return refuse(response, 400, 'ActionParameterValueNotInList');
    if ((type === 'On') === isOn()) return refuse(response, 409, 'The power is in that state already.');
    const timer = setTimeout(() => {
      pending.delete(timer);
      if (type === 'On') chassis('set', 'power', '1');
      else if (type === 'ForceRestart') chassis('set', 'reset', '1');
      else chassis('set', type === 'GracefulShutdown' ? 'shutdown' : 'power', '0');
    }, delayMs);
    pending.add(timer);
    return answer(response, 204);
  };
  const patch = (body: { Boot?: Record<string, string> }, ifMatch: string | undefined, response: ServerResponse) => {
    const { BootSourceOverrideTarget: target = '', BootSourceOverrideEnabled: enabled = '' } = body.Boot ?? {};
    if (ifMatch !== `"${state.version}"`) return refuse(response, 412, 'PreconditionFailed');
    if (!(target in TARGETS) || enabled !== 'Once') return refuse(response, 400, 'PropertyValueNotInList');
    state.version++;
    state.override = { BootSourceOverrideEnabled: enabled, BootSourceOverrideTarget: target };
    chassis('set', 'boot', TARGETS[target]!);
    return answer(response, 204);
  };
  const setMedium = async (url: string | undefined, response: ServerResponse) => {
    if (url && image) return refuse(response, 409, 'A medium is inserted.');
    await insert!(url);
    image = url ?? null;
    return answer(response, 204);
  };
  /** The parts beside the system: the virtual drive of the manager, and the accounts. */
  const answerRest = async (call: string, body: { Image?: string; Enabled?: boolean }, response: ServerResponse) => {
    const media = insert && { VirtualMedia: { '@odata.id': MEDIA } };
    if (call === `GET ${MANAGER}`) return answer(response, 200, { '@odata.id': MANAGER, ...media });
    if (call === `GET ${MEDIA}`) return answer(response, 200, { Members: [{ '@odata.id': `${MEDIA}/Cd` }] });
    const action = (name: string) => ({ [`#VirtualMedia.${name}`]: { target: `${MEDIA}/Cd/Actions/${name}` } });
    if (call === `GET ${MEDIA}/Cd`) {
      const Actions = { ...action('InsertMedia'), ...action('EjectMedia') };
      return answer(response, 200, { MediaTypes: ['CD', 'DVD'], Image: image, Inserted: image !== null, Actions });
    }
    if (insert && call === `POST ${MEDIA}/Cd/Actions/InsertMedia`) return setMedium(body.Image, response);
    if (insert && call === `POST ${MEDIA}/Cd/Actions/EjectMedia`) return setMedium(undefined, response);
    const Members = users.map((_, index) => ({ '@odata.id': `${ACCOUNTS}/${index}` }));
    if (call === `GET ${ACCOUNTS}` && options.listsUsers?.() !== false) return answer(response, 200, { Members });
    const found = users[Number(/\d+$/.exec(call)?.[0])];
    if (!call.includes(ACCOUNTS) || !found) return refuse(response, 404, 'ResourceMissingAtURI');
    if (call.startsWith('PATCH')) found.enabled = body.Enabled ?? found.enabled;
    return answer(response, 200, {
      UserName: found.name,
      RoleId: found.role ?? 'Administrator',
      Enabled: found.enabled,
    });
  };
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const body = text ? JSON.parse(text) : {};
    if (request.headers.authorization !== authorization) return refuse(response, 401, 'NoValidSession');
    const call = `${request.method} ${request.url}`;
    if (call === 'GET /redfish/v1/Systems') return answer(response, 200, { Members: [{ '@odata.id': SYSTEM }] });
    if (call === `POST ${RESET}`) return reset(body.ResetType, response);
    if (call === `PATCH ${SYSTEM}`) return patch(body, request.headers['if-match'], response);
    if (call !== `GET ${SYSTEM}`) return answerRest(call, body, response);
    return answer(
      response,
      200,
      {
        '@odata.id': SYSTEM,
        PowerState: isOn() ? 'On' : 'Off',
        Boot: state.override,
        Links: { ManagedBy: [{ '@odata.id': MANAGER }] },
        Actions: {
          '#ComputerSystem.Reset': { target: RESET, 'ResetType@Redfish.AllowableValues': RESET_TYPES },
        },
      },
      { etag: `"${state.version}"` },
    );
  };
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch(() => refuse(response, 500, 'InternalError'));
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  return {
    stop: async () => {
      for (const timer of pending) clearTimeout(timer);
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
