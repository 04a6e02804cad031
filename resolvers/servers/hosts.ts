/** The operator's hosts, and of a bare-metal host its controller, its network card and its disk. */
import { X509Certificate } from 'node:crypto';
import { type Bmc, bmcPasswordContext, type FIRMWARES } from '../../entities/servers/host.ts';

export { BMC_PROTOCOLS, FIRMWARES } from '../../entities/servers/host.ts';

import type { CatalogItem, DedicatedDetails } from '../../entities/catalog.ts';
import { columnsOf } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { Host, type HostState, moveHost } from '../../entities/servers/host.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../errors.ts';

export { HOST_STATES } from '../../entities/servers/host.ts';

export interface HostSize extends BareMetalFacts {
  vcpus?: number | null | undefined;
  memoryMb?: number | null | undefined;
  diskGb?: number | null | undefined;
  vcpuOvercommit?: number | null | undefined;
}

export interface NewHost extends HostSize {
  name: string;
  region: string;
  kind: Host['kind'];
  /** The tier that a dedicated server is sold as. */
  serviceCode?: string | null | undefined;
}

export const listHosts = ({ db }: Context, region?: string | null): Promise<Host[]> =>
  db.query(
    `select ${columnsOf(Host)} from host where $1::text is null or region_code = $1 order by region_code, name`,
    [region ?? null],
  );

/** @throws ApiError unknown_region, unknown_service_code, or validation_failed */
export async function addHost(context: Context, given: NewHost): Promise<Host> {
  const { name, region, kind, serviceCode = null } = given;
  const engine = context.provisioning.servers.engineOf(kind);
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    if (kind === 'DEDICATED' && !serviceCode) throw invalid('service_code', 'A dedicated server is sold as a tier.');
    if (kind === 'VPS' && serviceCode) throw invalid('kind', 'Only dedicated servers have a tier.');
    const bareMetal = await bareMetalColumns(tx, context, { name, kind }, given);
    if (engine === 'bmc') requireWhole(given);
    const { vcpus, memoryMb, diskGb } = serviceCode
      ? { ...(await sizeOfTier(tx, serviceCode)), ...known(given) }
      : given;
    if (!vcpus || !memoryMb || !diskGb) throw invalid('vcpus', 'Tell how many vCPUs, memory and disk it has.');
    const added = await tx.query<Host>(
      `insert into host (name, region_code, kind, driver, service_code, vcpus, memory_mb, disk_gb, vcpu_overcommit,
          bmc_protocol, bmc_address, bmc_user, bmc_password, bmc_certificate, mac, disk, firmware)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
        on conflict do nothing returning ${columnsOf(Host)}`,
      [name, region, kind, engine, serviceCode, vcpus, memoryMb, diskGb, given.vcpuOvercommit ?? 1, ...bareMetal],
    );
    if (!added[0]) throw invalid('name', 'There is a host of that name.');
    await recordHost(tx, context, name, { added: true });
    return added[0];
  });
}

/** What is not given stays. @throws ApiError not_found, or validation_failed if more is claimed than it would have */
export async function updateHost(context: Context, name: string, given: HostSize): Promise<Host> {
  const { vcpus = null, memoryMb = null, diskGb = null, vcpuOvercommit = null } = given;
  return context.db.transaction(async (tx) => {
    const before = await findHost(tx, name);
    if ([vcpus, memoryMb, diskGb].includes(0)) throw invalid('vcpus', 'A host has some of everything.');
    const bareMetal = await bareMetalColumns(tx, context, before, given);
    const [host] = await tx.query<Host>(
      `update host set vcpus = coalesce($2, vcpus), memory_mb = coalesce($3, memory_mb), disk_gb = coalesce($4, disk_gb),
          vcpu_overcommit = coalesce($5, vcpu_overcommit), bmc_protocol = coalesce($6, bmc_protocol),
          bmc_address = coalesce($7, bmc_address), bmc_user = coalesce($8, bmc_user),
          bmc_password = coalesce($9, bmc_password), bmc_certificate = case when $6::text is null then bmc_certificate else $10 end,
          mac = coalesce($11, mac), disk = coalesce($12, disk), firmware = coalesce($13, firmware), updated_at = now()
        where name = $1 and (kind = 'DEDICATED' or claimed_vcpus <= coalesce($2, vcpus) * coalesce($5, vcpu_overcommit)
          and claimed_memory_mb <= coalesce($3, memory_mb) and claimed_disk_gb <= coalesce($4, disk_gb))
        returning ${columnsOf(Host)}`,
      [name, vcpus, memoryMb, diskGb, vcpuOvercommit, ...bareMetal],
    );
    if (!host) throw invalid('vcpus', 'Machines have claimed more than that.');
    await recordHost(tx, context, name, { updated: Object.keys(given) });
    return host;
  });
}

/** Drains a host, or lets it have machines again; what is so already stays. @throws ApiError not_found, validation_failed */
export async function setHostState(context: Context, name: string, state: HostState): Promise<Host> {
  return context.db.transaction(async (tx) => {
    const before = await findHost(tx, name);
    if (before.state === state) return before;
    const moved = await moveHost(tx, name, state, actorOf(context));
    if (!moved) throw invalid('name', `A host that is ${before.state} cannot become ${state}.`);
    return moved;
  });
}

/**
 * A retired host may go with what is on it: what keeps it from being sold stays.
 * @throws ApiError not_found, or validation_failed while it holds machines
 */
export async function removeHost(context: Context, name: string): Promise<Host> {
  return context.db.transaction(async (tx) => {
    const host = await findHost(tx, name);
    const [held] = await tx.query(
      `select 1 from placement where host = $1
        union all select 1 from deployment where box = $1 and state <> 'RETIRED' limit 1`,
      [name],
    );
    if (held) throw invalid('name', 'It holds machines. Drain it, and delete them or wait until they are gone.');
    await tx.query('delete from host where name = $1', [name]);
    await recordHost(tx, context, name, { removed: true });
    return host;
  });
}

/** Locked, so that nothing is claimed meanwhile. @throws ApiError not_found */
async function findHost(tx: Transaction, name: string): Promise<Host> {
  const [host] = await tx.query<Host>(`select ${columnsOf(Host)} from host where name = $1 for update`, [name]);
  if (!host) throw new ApiError('not_found');
  return host;
}

/** @throws ApiError unknown_region */
export async function requireRegion(tx: Transaction, code: string): Promise<void> {
  const [region] = await tx.query(`select 1 from catalog_item where code = $1 and kind = 'bastion'`, [code]);
  if (!region) throw new ApiError('unknown_region');
}

async function sizeOfTier(tx: Transaction, code: string) {
  const [tier] = await tx.query<CatalogItem>(
    `select details from catalog_item where code = $1 and kind = 'dedicated'`,
    [code],
  );
  if (!tier) throw new ApiError('unknown_service_code');
  const { threads, memoryMb, disks } = tier.details as DedicatedDetails;
  return { vcpus: threads, memoryMb, diskGb: disks.reduce((sum, { count, sizeGb }) => sum + count * sizeGb, 0) };
}

/** What is given of a size. */
const known = ({ vcpus, memoryMb, diskGb }: HostSize) =>
  Object.fromEntries(Object.entries({ vcpus, memoryMb, diskGb }).filter(([, value]) => value != null));

const recordHost = (tx: Transaction, context: Context, name: string, data: Record<string, unknown>) =>
  record(tx, OPERATOR_ACCOUNT, name, { type: 'host.updated', actor: actorOf(context), data });

export interface BareMetalFacts {
  /** Always as a whole: what it does not have, the controller does not have any more. */
  bmc?: Bmc | null | undefined;
  mac?: string | null | undefined;
  disk?: string | null | undefined;
  firmware?: (typeof FIRMWARES)[number] | null | undefined;
}

/** @throws ApiError validation_failed where the driver would lack something */
export function requireWhole({ bmc, mac, disk }: BareMetalFacts): void {
  if (!bmc) throw invalid('bmc', 'Tell how its controller is reached.');
  if (!mac) throw invalid('mac', 'Tell the MAC address that it boots from.');
  if (!disk) throw invalid('disk', 'Tell the device that systems go to, and that is wiped.');
}

/**
 * The values of the columns from bmc_protocol to firmware; null for what is not given. A machine that is on the host goes
 * on with the MAC of its new card.
 * @throws ApiError validation_failed
 */
export async function bareMetalColumns(
  tx: Transaction,
  { vault }: Context,
  { name, kind }: Pick<Host, 'name' | 'kind'>,
  { bmc, disk = null, firmware = null, ...given }: BareMetalFacts,
): Promise<unknown[]> {
  const mac = given.mac?.toLowerCase() ?? null;
  if (kind === 'VPS' && (bmc || mac || disk || firmware))
    throw invalid('kind', 'Only dedicated servers have a BMC, a MAC, a disk and a firmware of their own.');
  const reached = bmc ? { ...bmc, ...reachedAt(bmc) } : undefined;
  await requireUnshared(tx, name, mac, reached?.address ?? null);
  if (disk) await requireNoOtherDisk(tx, name, disk);
  if (mac) await tx.query('update deployment set mac = $2 where box = $1', [name, mac]);
  const controller = reached
    ? [reached.protocol, reached.address, reached.user, vault.seal(reached.password, bmcPasswordContext(name))]
    : [null, null, null, null];
  return [...controller, reached?.certificate ?? null, mac, disk, firmware];
}

/** Of two bare-metal hosts with one controller or one card, the wrong one would be wiped. */
async function requireUnshared(tx: Transaction, name: string, mac: string | null, address: string | null) {
  const [other] = await tx.query<{ name: string; field: string }>(
    `select name, case when mac = $2 then 'mac' else 'bmc.address' end as field from host
      where name <> $1 and (mac = $2 or bmc_address = $3)
    union all select box, 'mac' from deployment where box <> $1 and mac = $2 limit 1`,
    [name, mac, address],
  );
  if (other) throw invalid(other.field, `That is of ${other.name}.`);
}

/** What is on a disk is wiped from that disk. */
async function requireNoOtherDisk(tx: Transaction, name: string, disk: string) {
  const [held] = await tx.query('select 1 from deployment where box = $1 and disk <> $2', [name, disk]);
  if (held) throw invalid('disk', 'A machine is on another disk of it, which is to be wiped first.');
}

const CONTROL = /\p{Cc}/u;
/** A name or an IPv4 address: never an option of ipmitool. */
const IPMI_ADDRESS = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[1-9][0-9]{0,4})?$/;
/** What IPMI 2.0 has room for, in bytes. */
const [IPMI_USER_MAX, IPMI_PASSWORD_MAX] = [16, 20];

/** Where the controller is, in the one form in which it is kept, and the certificate that vouches for it. */
function reachedAt({ protocol, address, user, password, certificate }: Bmc): Pick<Bmc, 'address' | 'certificate'> {
  if (CONTROL.test(user) || CONTROL.test(password))
    throw invalid('bmc', 'No line of a controller has control characters.');
  if (protocol === 'IPMI') {
    if (!IPMI_ADDRESS.test(address))
      throw invalid('bmc.address', 'A name or an IPv4 address, and :port if it is not 623.');
    if (Buffer.byteLength(user) > IPMI_USER_MAX) throw invalid('bmc.user', 'IPMI has 16 bytes for it.');
    if (Buffer.byteLength(password) > IPMI_PASSWORD_MAX) throw invalid('bmc.password', 'IPMI has 20 bytes for it.');
    if (certificate) throw invalid('bmc.certificate', 'IPMI has none.');
    return { address: address.toLowerCase() };
  }
  const url = URL.parse(address);
  const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isOrigin) throw invalid('bmc.address', 'A URL such as https://10.1.0.12, without a path.');
  if (user.includes(':')) throw invalid('bmc.user', 'Redfish has no colon in it (RFC 7617).');
  if (!certificate) return { address: url.origin };
  if (url.protocol !== 'https:') throw invalid('bmc.certificate', 'Only https has one.');
  return { address: url.origin, certificate: certificateOf(certificate).toString() };
}

/** SHA-256 of the certificate that vouches for the controller of a host, in hex with colons. */
export const fingerprintOf = ({ bmcCertificate }: Host): string | null =>
  bmcCertificate && certificateOf(bmcCertificate).fingerprint256;

function certificateOf(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw invalid('bmc.certificate', 'A certificate in PEM.');
  }
}
