/**
 * The part of Redfish (DSP0266) that server controllers have in common: one system, its reset and its boot override. It
 * controls the same QEMU process. Like real controllers, it answers before it has carried out a reset.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

interface Options {
  port: number;
  user: string;
  password: string;
  chassis(...what: string[]): string;
  /** Milliseconds from the answer to the end of a reset. */
  delayMs?: number;
  /** Serves plain HTTP if absent. */
  tls?: { cert: string; key: string };
}
const SYSTEM = '/redfish/v1/Systems/1';
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;
const RESET_TYPES = ['On', 'ForceOff', 'GracefulShutdown', 'ForceRestart'];
const TARGETS: Record<string, string> = { Pxe: 'pxe', Hdd: 'disk', None: 'none' };

export async function startRedfish({ port, user, password, chassis, delayMs = 300, tls }: Options) {
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
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const body = text ? JSON.parse(text) : {};
    if (request.headers.authorization !== authorization) return refuse(response, 401, 'NoValidSession');
    const call = `${request.method} ${request.url}`;
    if (call === 'GET /redfish/v1/Systems') return answer(response, 200, { Members: [{ '@odata.id': SYSTEM }] });
    if (call === `POST ${RESET}`) return reset(body.ResetType, response);
    if (call === `PATCH ${SYSTEM}`) return patch(body, request.headers['if-match'], response);
    if (call !== `GET ${SYSTEM}`) return refuse(response, 404, 'ResourceMissingAtURI');
    return answer(
      response,
      200,
      {
        '@odata.id': SYSTEM,
        PowerState: isOn() ? 'On' : 'Off',
        Boot: state.override,
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
