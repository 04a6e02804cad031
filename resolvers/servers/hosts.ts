/** The operator's hosts: where machines are made. */

import type { CatalogItem, DedicatedDetails } from '../../entities/catalog.ts';
import type { Transaction } from '../../entities/database/database.ts';
import { columnsOf } from '../../entities/database/table.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { Host, type HostState, moveHost } from '../../entities/servers/host.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../invalid.ts';
import { type BoxFacts, boxColumns, requireWhole } from './bare-metal.ts';

export { HOST_STATES } from '../../entities/servers/host.ts';

export interface HostSize extends BoxFacts {
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
  const engine = context.provisioning.engineOf(kind);
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    if (kind === 'DEDICATED' && !serviceCode) throw invalid('service_code', 'A dedicated server is sold as a tier.');
    if (kind === 'VPS' && serviceCode) throw invalid('kind', 'Only dedicated servers have a tier.');
    const box = await boxColumns(tx, context, { name, kind }, given);
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
      [name, region, kind, engine, serviceCode, vcpus, memoryMb, diskGb, given.vcpuOvercommit ?? 1, ...box],
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
    const box = await boxColumns(tx, context, before, given);
    const [host] = await tx.query<Host>(
      `update host set vcpus = coalesce($2, vcpus), memory_mb = coalesce($3, memory_mb), disk_gb = coalesce($4, disk_gb),
          vcpu_overcommit = coalesce($5, vcpu_overcommit), bmc_protocol = coalesce($6, bmc_protocol),
          bmc_address = coalesce($7, bmc_address), bmc_user = coalesce($8, bmc_user),
          bmc_password = coalesce($9, bmc_password), bmc_certificate = case when $6::text is null then bmc_certificate else $10 end,
          mac = coalesce($11, mac), disk = coalesce($12, disk), firmware = coalesce($13, firmware), updated_at = now()
        where name = $1 and (kind = 'DEDICATED' or claimed_vcpus <= coalesce($2, vcpus) * coalesce($5, vcpu_overcommit)
          and claimed_memory_mb <= coalesce($3, memory_mb) and claimed_disk_gb <= coalesce($4, disk_gb))
        returning ${columnsOf(Host)}`,
      [name, vcpus, memoryMb, diskGb, vcpuOvercommit, ...box],
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
 * A retired box may go with what is on it: what keeps it from being sold stays.
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
  record(tx, OPERATOR_ACCOUNT, name, { type: 'host.updated', resource: 'host', actor: actorOf(context), data });
