/** The engines of the operator. A resolver never calls an engine: a worker tells in the row what it found there. */
import { createPrivateKey } from 'node:crypto';
import { findAll, lock, remove } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { REMOVE_IMAGES_OF_NO_ENGINE } from '../../entities/engine-image.ts';
import { transition } from '../../entities/history/transition.ts';
import {
  ADD_ENGINE,
  ENGINE_KEY,
  ENGINE_LIFECYCLE,
  Engine,
  type EngineConnection,
  type EngineState,
  FIND_SAME_ENGINE,
  FIND_SERVER_OF_ENGINE,
  FIND_USE_OF_ENGINE,
  IS_VPS_SIMULATED,
  LOCK_ENGINES,
  NO_ENGINE,
  UPDATE_ENGINE,
} from '../../entities/servers/engine.ts';
import { CircuitBreaker, RESOLVE_ALL } from '../../entities/servers/finding.ts';
import { lookAtEngines } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { requireSeen } from '../seen.ts';
import { certificateOf, requireRegion } from './hosts.ts';

export { ENGINE_PRODUCTS, ENGINE_STATES } from '../../entities/servers/engine.ts';

/** The names of the drivers, which engines of the environment have. */
const DRIVERS = ['bmc', 'lxc', 'manual', NO_ENGINE, 'simulated'];
/** The most members of a cluster, and the most nameservers of a machine. */
const [ENDPOINTS_MAX, NAMESERVERS_MAX] = [64, 8];
const DEFAULTS: EngineConnection = {
  ...{ endpoints: [], project: 'freehold', pool: 'default', network: 'lxdbr0', nameservers: [], openMail: false },
  ...{ clientCertificate: null, serverCertificate: null },
};

/** The settings that the operator can change. Omitted ones stay, or have the defaults of the environment. */
export type EngineSettings = { [K in keyof EngineConnection]?: EngineConnection[K] | null | undefined } & {
  /** PEM of the key of the client certificate. */
  clientKey?: string | null | undefined;
};
export type NewEngine = EngineSettings & { name: string; region: string };

export const listEngines = ({ db }: Context): Promise<Engine[]> => findAll(db, Engine, {}, { name: 'ASC' });

/** @throws ApiError unknown_region, or validation_failed */
export async function addEngine(context: Context, given: NewEngine): Promise<Engine> {
  const { name, region, ...settings } = given;
  const connection = connectionOf(DEFAULTS, settings, null);
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    const { simulated } = (await IS_VPS_SIMULATED.first(tx))!;
    if (simulated) throw invalid('name', 'VPS are simulated. Configure the first engine by LXC_ENDPOINTS.');
    await LOCK_ENGINES.all(tx);
    await requireOther(tx, name, connection);
    const key = sealedKey(context, name, settings);
    const parameters = [name, region, JSON.stringify(connection), key];
    const added = DRIVERS.includes(name) ? undefined : await ADD_ENGINE.first(tx, parameters);
    if (!added) throw invalid('name', 'Another engine has this name.');
    await recordEngine(tx, context, name, { added: true });
    return added;
  });
}

/**
 * Changes the given settings. The workers use the engine again after a look.
 * @param seen the revision that the operator saw; absent: any
 * @throws ApiError not_found, validation_failed
 */
export async function updateEngine(
  context: Context,
  name: string,
  settings: EngineSettings,
  seen?: number | null,
): Promise<Engine> {
  return context.db.transaction(async (tx) => {
    await LOCK_ENGINES.all(tx);
    const before = await lockAdded(tx, name);
    await requireSeen(tx, { what: name, present: before.revision, seen, type: 'engine.updated', subject: name });
    const connection = connectionOf(before.connection!, settings, before.clientKey);
    await requireOther(tx, name, connection);
    if (connection.project !== before.connection!.project) await requireEmpty(tx, name);
    const key = sealedKey(context, name, settings) ?? before.clientKey;
    const engine = (await UPDATE_ENGINE.first(tx, [name, JSON.stringify(connection), key]))!;
    await recordEngine(tx, context, name, { updated: Object.keys(settings) });
    return engine;
  });
}

/** Drains or activates an engine. @throws ApiError not_found */
export async function setEngineState(context: Context, name: string, state: EngineState): Promise<Engine> {
  return context.db.transaction(async (tx) => {
    const before = found(await lock(tx, Engine, { name }));
    const moved = await transition(tx, ENGINE_LIFECYCLE, name, state);
    if (moved) await recordEngine(tx, context, name, { state });
    return moved ?? before;
  });
}

/** Removes an engine without hosts and servers, and resolves its findings. @throws ApiError not_found, validation_failed */
export async function removeEngine(context: Context, name: string): Promise<Engine> {
  return context.db.transaction(async (tx) => {
    await remove(tx, CircuitBreaker, { driver: name });
    await RESOLVE_ALL.all(tx, [name]);
    const engine = await lockAdded(tx, name);
    const use = await FIND_USE_OF_ENGINE.first(tx, [name]);
    if (use)
      throw invalid('name', `The engine still has ${use.used}. Drain it, and remove its servers and hosts first.`);
    await remove(tx, Engine, { name });
    await REMOVE_IMAGES_OF_NO_ENGINE.all(tx);
    await recordEngine(tx, context, name, { removed: true });
    return engine;
  });
}

/** Locks an engine that the operator has added. @throws ApiError not_found, validation_failed for one of the environment */
async function lockAdded(tx: Transaction, name: string): Promise<Engine> {
  const engine = found(await lock(tx, Engine, { name }));
  if (!engine.connection) throw invalid('name', 'The environment of the workers configures this engine.');
  return engine;
}

/** Another project has none of the machines. @throws ApiError validation_failed if there may be some */
async function requireEmpty(tx: Transaction, name: string): Promise<void> {
  const server = await FIND_SERVER_OF_ENGINE.first(tx, [name]);
  if (server) throw invalid('project', `The project has the machine of ${server.used}. Remove all servers first.`);
}

/** Two engines with the same machines would report those of each other. @throws ApiError validation_failed */
async function requireOther(tx: Transaction, name: string, { project, endpoints }: EngineConnection): Promise<void> {
  const same = await FIND_SAME_ENGINE.first(tx, [name, project, endpoints]);
  if (same) throw invalid('endpoints', `The engine ${same.name} has that project at one of these endpoints.`);
}

/** Records a change, and lets a worker look at all engines at once. */
async function recordEngine(tx: Transaction, context: Context, name: string, data: Record<string, unknown>) {
  await lookAtEngines(tx);
  await recordByOperator(tx, context, name, { type: 'engine.updated', data });
}

const sealedKey = ({ vault }: Context, name: string, { clientKey }: EngineSettings): Buffer | null =>
  clientKey == null ? null : ENGINE_KEY.seal(vault, clientKey, name);

/**
 * The connection after a change.
 * @param key the stored key, which belongs to the stored certificate
 * @throws ApiError validation_failed
 */
function connectionOf(before: EngineConnection, settings: EngineSettings, key: Buffer | null): EngineConnection {
  const { clientKey, ...rest } = settings;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value != null));
  const whole: EngineConnection = { ...before, ...given };
  const connection = { ...whole, endpoints: whole.endpoints.map(normalized) };
  const { endpoints, clientCertificate, serverCertificate } = connection;
  if (connection.nameservers.length > NAMESERVERS_MAX)
    throw invalid('nameservers', `A machine has at most ${NAMESERVERS_MAX} nameservers.`);
  if (!endpoints.length || endpoints.length > ENDPOINTS_MAX || !endpoints.every(isEndpoint))
    throw invalid('endpoints', 'State unix:/path or https://host:8443, once for each member of the cluster.');
  if (serverCertificate) certificateOf(serverCertificate, 'server_certificate');
  requirePair(settings);
  const isSecured = clientCertificate && serverCertificate && (clientKey ?? key);
  if (endpoints.some((one) => one.startsWith('https:')) && !isSecured)
    throw invalid('endpoints', 'An engine by https needs the client certificate, its key, and the server certificate.');
  return connection;
}

function isEndpoint(text: string): boolean {
  if (/^unix:\/\S+$/.test(text)) return true;
  const url = URL.parse(text);
  return url?.protocol === 'https:' && url.href === `${url.origin}/`;
}

/** The one text of an endpoint by https. */
const normalized = (text: string): string =>
  text.startsWith('unix:') || !isEndpoint(text) ? text : new URL(text).origin;

/** @throws ApiError validation_failed if the client certificate comes without its key, or the other way round */
function requirePair({ clientCertificate, clientKey }: EngineSettings): void {
  if (clientCertificate == null && clientKey == null) return;
  if (clientCertificate == null || clientKey == null)
    throw invalid('client_key', 'The client certificate and its key come together.');
  const certificate = certificateOf(clientCertificate, 'client_certificate');
  try {
    if (certificate.checkPrivateKey(createPrivateKey(clientKey))) return;
  } catch {
    // It is no key.
  }
  throw invalid('client_key', 'It is not the key of the client certificate, in PEM.');
}
