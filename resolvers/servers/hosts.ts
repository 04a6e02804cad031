/** The operator's hosts. A bare-metal host has a controller, a network card and a disk, too. */
import { X509Certificate } from 'node:crypto';
import { CatalogItem, type DedicatedDetails, FIND_TIER } from '../../entities/catalog.ts';
import { exists, find, findAll, lock, remove, update } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { Deployment } from '../../entities/servers/deployment.ts';
import { Engine, NO_ENGINE } from '../../entities/servers/engine.ts';
import { BMC_PASSWORD, type Bmc, type FIRMWARES, Host, type HostState, moveHost } from '../../entities/servers/host.ts';
import { ADD_HOST, FIND_HOST_CONFLICT, FIND_OCCUPANT, UPDATE_HOST } from '../../entities/servers/host-settings.ts';
import { FORGET_UNMOVED } from '../../entities/servers/placement.ts';
import { actorOf, type Context } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { requireSeen } from '../seen.ts';

export { BMC_PROTOCOLS, FIRMWARES, HOST_STATES } from '../../entities/servers/host.ts';

/** Parts of a bare-metal host. */
interface BareMetal {
  /** The whole access: a new one replaces the certificate, too. */
  bmc?: Bmc | null | undefined;
  mac?: string | null | undefined;
  /** The names of all disks in /dev/disk/by-id, or their serial numbers. The first gets the system. */
  disks?: readonly string[] | null | undefined;
  firmware?: (typeof FIRMWARES)[number] | null | undefined;
  bootNetworkIsolated?: boolean | null | undefined;
}

/** The settings that the operator can change. Omitted ones stay. */
export interface HostSettings extends BareMetal {
  vcpus?: number | null | undefined;
  memoryMb?: number | null | undefined;
  diskGb?: number | null | undefined;
  vcpuOvercommit?: number | null | undefined;
}

type Size = Pick<Host, 'vcpus' | 'memoryMb' | 'diskGb'>;

export interface NewHost extends HostSettings {
  name: string;
  region: string;
  kind: Host['kind'];
  /** DEDICATED only: the tier as which the host is sold. */
  serviceCode?: string | null | undefined;
  /** Default: the engine of the environment that makes this kind. */
  engine?: string | null | undefined;
}

export const listHosts = ({ db }: Context, region?: string | null): Promise<Host[]> =>
  findAll(db, Host, region == null ? {} : { regionCode: region }, { regionCode: 'ASC', name: 'ASC' });

/** @throws ApiError unknown_region, unknown_service_code, or validation_failed */
export async function addHost(context: Context, given: NewHost): Promise<Host> {
  const { name, region, kind, serviceCode = null } = given;
  const engine = given.engine ?? context.provisioning.servers.engineOf(kind);
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    if (engine === NO_ENGINE)
      throw invalid('engine', `The configuration has no driver for ${kind}. Name an engine that you added.`);
    if (given.engine) await requireEngine(tx, given.engine, given);
    if (kind === 'DEDICATED' && !serviceCode) throw invalid('service_code', 'A dedicated server is sold as a tier.');
    if (kind === 'VPS' && serviceCode) throw invalid('kind', 'Only dedicated servers have a tier.');
    const bareMetal = await bareMetalColumns(tx, context, { name, kind }, given);
    if (engine === 'bmc') requireWhole(given);
    const { vcpus, memoryMb, diskGb } = serviceCode
      ? { ...(await sizeOfTier(tx, serviceCode)), ...known(given) }
      : { ...(await toldSize(tx, engine, name)), ...known(given) };
    if (!vcpus || !memoryMb || !diskGb)
      throw invalid('vcpus', 'State the vCPUs, the memory and the disk of the host. Its engine has not told them yet.');
    const added = await ADD_HOST.first(tx, [
      name,
      region,
      kind,
      engine,
      serviceCode,
      vcpus,
      memoryMb,
      diskGb,
      given.vcpuOvercommit ?? 1,
      ...bareMetal,
    ]);
    if (!added) throw invalid('name', 'Another host has this name.');
    await recordHost(tx, context, name, { added: true });
    return added;
  });
}

/**
 * Changes the given fields.
 * @param seen the revision that the operator saw; absent: any
 * @throws ApiError not_found, or validation_failed if machines have claimed more
 */
export async function updateHost(
  context: Context,
  name: string,
  given: HostSettings,
  seen?: number | null,
): Promise<Host> {
  const { vcpus = null, memoryMb = null, diskGb = null, vcpuOvercommit = null } = given;
  return context.db.transaction(async (tx) => {
    const before = await lockHost(tx, name);
    await requireSeen(tx, { what: name, present: before.revision, seen, type: 'host.updated', subject: name });
    if ([vcpus, memoryMb, diskGb].includes(0)) throw invalid('vcpus', 'vCPUs, memory and disk have to be above 0.');
    const bareMetal = await bareMetalColumns(tx, context, before, given);
    if (given.mac) await moveToCard(tx, name, given.mac.toLowerCase());
    const host = await UPDATE_HOST.first(tx, [name, vcpus, memoryMb, diskGb, vcpuOvercommit, ...bareMetal]);
    if (!host) throw invalid('vcpus', 'Machines have claimed more than that.');
    if (host.bmcProtocol !== before.bmcProtocol || host.bmcAddress !== before.bmcAddress) await forgetUsers(tx, name);
    await recordHost(tx, context, name, { updated: Object.keys(given) });
    return host;
  });
}

/** Drains or activates a host, unless its state is that already. @throws ApiError not_found, validation_failed */
export async function setHostState(context: Context, name: string, state: HostState): Promise<Host> {
  return context.db.transaction((tx) => changeState(tx, context, name, state));
}

async function changeState(tx: Transaction, context: Context, name: string, state: HostState): Promise<Host> {
  const before = await lockHost(tx, name);
  if (before.state === state) return before;
  const moved = await moveHost(tx, name, state, actorOf(context));
  if (!moved) throw invalid('name', `A host that is ${before.state} cannot become ${state}.`);
  return moved;
}

/**
 * Lets workers move the machines of a host to the other hosts of its engine. A repeated call tries failed moves again.
 * @throws ApiError not_found, or validation_failed without another host
 */
export async function evacuateHost(context: Context, name: string): Promise<Host> {
  return context.db.transaction(async (tx) => {
    const { kind, driver, regionCode } = await lockHost(tx, name);
    if (kind !== 'VPS') throw invalid('name', 'A dedicated server cannot move.');
    const active = await findAll(tx, Host, { driver, regionCode, kind, state: 'ACTIVE' });
    if (!active.some((other) => other.name !== name))
      throw invalid(
        'name',
        `The engine ${driver} has no other active host in ${regionCode}. Its machines have nowhere to go.`,
      );
    await FORGET_UNMOVED.all(tx, [name]);
    return changeState(tx, context, name, 'EVACUATING');
  });
}

/**
 * Removes a host. The deployment of a retired host stays, and still keeps that hardware from being sold.
 * @throws ApiError not_found, or validation_failed while it holds machines
 */
export async function removeHost(context: Context, name: string): Promise<Host> {
  return context.db.transaction(async (tx) => {
    const host = await lockHost(tx, name);
    if (await FIND_OCCUPANT.first(tx, [name]))
      throw invalid('name', 'The host holds machines. Drain it, and delete them or wait until they are gone.');
    await remove(tx, Host, { name });
    await recordHost(tx, context, name, { removed: true });
    return host;
  });
}

/** Locks a host, so that no order claims room on it meanwhile. @throws ApiError not_found */
async function lockHost(tx: Transaction, name: string): Promise<Host> {
  return found(await lock(tx, Host, { name }));
}

/** @throws ApiError unknown_region */
export async function requireRegion(db: Queryable, code: string): Promise<void> {
  if (!(await exists(db, CatalogItem, { code, kind: 'bastion' }))) throw new ApiError('unknown_region');
}

/** Locks the engine, so that it is not removed meanwhile. @throws ApiError validation_failed if it can have no such host */
async function requireEngine(tx: Transaction, name: string, { kind, region }: NewHost): Promise<void> {
  const engine = await lock(tx, Engine, { name });
  if (!engine?.kinds.includes(kind)) throw invalid('engine', `There is no engine ${name} for ${kind}.`);
  if (engine.regionCode && engine.regionCode !== region)
    throw invalid('engine', `The hosts of ${name} are in ${engine.regionCode}.`);
}

/** The deployment on a host goes on with a new card. A retired deployment keeps its card, which identifies unwiped hardware. */
async function moveToCard(tx: Transaction, box: string, mac: string): Promise<void> {
  const deployment = await lock(tx, Deployment, { box });
  if (deployment && deployment.state !== 'RETIRED') await update(tx, Deployment, { id: deployment.id }, { mac });
}

/** Another controller, or another protocol, has users of its own. Those of the earlier one are no measure for them. */
async function forgetUsers(tx: Transaction, box: string): Promise<void> {
  await update(tx, Host, { name: box }, { bmcUsers: null });
  await update(tx, Deployment, { box }, { bmcUsers: null });
}

async function sizeOfTier(tx: Transaction, code: string) {
  const tier = await FIND_TIER.first(tx, [code]);
  if (tier?.kind !== 'dedicated') throw new ApiError('unknown_service_code');
  const { threads, memoryMb, disks } = tier.details as DedicatedDetails;
  return { vcpus: threads, memoryMb, diskGb: disks.reduce((sum, { count, sizeGb }) => sum + count * sizeGb, 0) };
}

/** The size of a host as its engine told it; empty if it has not. A single server has only one host, under any name. */
async function toldSize(tx: Transaction, engine: string, name: string): Promise<Partial<Size>> {
  const { members = [] } = (await find(tx, Engine, { name: engine })) ?? {};
  const member = members.length === 1 ? members[0] : members.find((one) => one.name === name);
  return member ? { vcpus: member.vcpus, memoryMb: member.memoryMb, diskGb: member.diskGb } : {};
}

/** The given members of a size. */
const known = ({ vcpus, memoryMb, diskGb }: HostSettings): Partial<Size> =>
  Object.fromEntries(Object.entries({ vcpus, memoryMb, diskGb }).filter(([, value]) => value != null));

const recordHost = (tx: Transaction, context: Context, name: string, data: Record<string, unknown>) =>
  recordByOperator(tx, context, name, { type: 'host.updated', data });

/** @throws ApiError validation_failed if the driver would lack something */
function requireWhole({ bmc, mac, disks, bootNetworkIsolated }: BareMetal): void {
  if (!bmc) throw invalid('bmc', 'State the access to the controller.');
  if (!mac) throw invalid('mac', 'State the MAC address of the interface that boots from the network.');
  if (!disks) throw invalid('disks', 'State all disks of the host, by /dev/disk/by-id or serial number.');
  if (bmc.protocol === 'IPMI' && !bootNetworkIsolated)
    throw invalid(
      'boot_network_isolated',
      'IPMI has no virtual media, so strangers in the boot network could read passwords and skip the wipe. Isolate that network, and confirm it.',
    );
}

/**
 * The values of the columns from bmc_protocol to boot_network_isolated, null for absent ones.
 * @throws ApiError validation_failed
 */
async function bareMetalColumns(
  tx: Transaction,
  { vault }: Context,
  { name, kind }: Pick<Host, 'name' | 'kind'>,
  { bmc, firmware = null, bootNetworkIsolated = null, ...given }: BareMetal,
): Promise<unknown[]> {
  const mac = given.mac?.toLowerCase() ?? null;
  const disks = given.disks ? diskNames(given.disks) : null;
  if (kind === 'VPS' && (bmc || mac || disks || firmware || bootNetworkIsolated))
    throw invalid('kind', 'Only dedicated servers have a BMC, a MAC address, disks, a firmware and a boot network.');
  const access = bmc ? { ...bmc, ...normalized(bmc) } : undefined;
  await requireUnshared(tx, name, mac, access?.address ?? null);
  const { protocol = null, address = null, user = null, password, certificate = null } = access ?? {};
  const sealed = password === undefined ? null : BMC_PASSWORD.seal(vault, password, name);
  return [protocol, address, user, sealed, certificate, mac, disks, firmware, bootNetworkIsolated];
}

/** Refuses to share a controller or a card between two hosts, because the driver would wipe the wrong one. */
async function requireUnshared(tx: Transaction, name: string, mac: string | null, address: string | null) {
  const other = await FIND_HOST_CONFLICT.first(tx, [name, mac, address]);
  if (other) throw invalid(other.field, `The host ${other.name} has it.`);
}

const DISKS_MAX = 64;

/** The names without their folder. @throws ApiError validation_failed for none, too many, or a repeated one */
function diskNames(given: readonly string[]): string[] {
  const names = given.map((name) => name.replace(/^\/dev\/disk\/by-id\//, ''));
  if (!names.length || names.length > DISKS_MAX) throw invalid('disks', `A host has 1 to ${DISKS_MAX} disks.`);
  if (new Set(names).size < names.length) throw invalid('disks', 'A disk is listed twice.');
  return names;
}

const CONTROL = /\p{Cc}/u;
/** A name or an IPv4 address. It never begins as an option of ipmitool does. */
const IPMI_ADDRESS = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[1-9][0-9]{0,4})?$/;
/** The longest user and password of IPMI 2.0, in bytes. */
const [IPMI_USER_MAX, IPMI_PASSWORD_MAX] = [16, 20];

/** The address of a controller in its stored form, and its certificate. @throws ApiError validation_failed */
function normalized({ protocol, address, user, password, certificate }: Bmc): Pick<Bmc, 'address' | 'certificate'> {
  if (CONTROL.test(user) || CONTROL.test(password))
    throw invalid('bmc', 'The user and the password cannot contain control characters.');
  if (protocol === 'IPMI') {
    if (!IPMI_ADDRESS.test(address))
      throw invalid('bmc.address', 'IPMI needs a name or an IPv4 address, with a port unless it is 623.');
    if (Buffer.byteLength(user) > IPMI_USER_MAX) throw invalid('bmc.user', 'IPMI allows at most 16 bytes.');
    if (Buffer.byteLength(password) > IPMI_PASSWORD_MAX) throw invalid('bmc.password', 'IPMI allows at most 20 bytes.');
    if (certificate) throw invalid('bmc.certificate', 'IPMI uses no certificate.');
    return { address: address.toLowerCase() };
  }
  const url = URL.parse(address);
  const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isOrigin) throw invalid('bmc.address', 'Redfish needs a URL such as https://10.1.0.12, without a path.');
  if (user.includes(':')) throw invalid('bmc.user', 'Redfish allows no colon in the user (RFC 7617).');
  if (!certificate) return { address: url.origin };
  if (url.protocol !== 'https:') throw invalid('bmc.certificate', 'Only https uses a certificate.');
  return { address: url.origin, certificate: certificateOf(certificate, 'bmc.certificate').toString() };
}

/** The SHA-256 of a stored certificate, in hex with colons; null without one. */
export const sha256Of = (pem: string | null | undefined): string | null =>
  pem ? new X509Certificate(pem).fingerprint256 : null;

/** @throws ApiError validation_failed if the text is no certificate in PEM */
export function certificateOf(pem: string, field: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw invalid(field, 'It is not a certificate in PEM.');
  }
}
