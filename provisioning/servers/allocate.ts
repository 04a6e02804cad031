/**
 * Picks the host of a machine, in the transaction that claims the rest of its place. What is claimed is written down as a
 * placement, and just that is given back. The catalog counts with the same expression, so it offers what fits.
 *
 * Whoever claims has locked the row of the stock before: first the stock, then hosts.
 */
import type { Queryable, Transaction } from '../../entities/database.ts';
import { NEEDS_HOSTS_SQL } from '../../entities/engine.ts';
import { hostsSql, needSql, ROOM_SQL } from '../../entities/host.ts';
import type { Server } from '../../entities/server.ts';

export type Machine = Pick<Server, 'orderNumber' | 'generation' | 'region' | 'serviceCode'>;

/** Hosts of a region that the tier could be on: of its kind, and of the engine that makes machines of that kind now. */
const HOSTS = `from catalog_item tier join host on ${hostsSql('$1')} where tier.code = $2`;

/**
 * Claims room for a machine on an active host: one with much free memory, at some random, so that many who come at once
 * spread out. One that a machine of the same order was given up on, such as `avoided`, is the last resort.
 * @returns the host; null where the region has no hosts of that kind and the engine needs none, so that the stock alone
 * decides; undefined: no room
 */
export async function claimHost(
  tx: Transaction,
  machine: Machine,
  avoided: string | null = null,
): Promise<string | null | undefined> {
  const { orderNumber, generation, region, serviceCode } = machine;
  const claim = async (wait: '' | 'skip locked') =>
    (await tx.query<{ host: string }>(claimSql(wait), [region, serviceCode, orderNumber, generation, avoided]))[0]
      ?.host;
  const host = await claim('skip locked');
  if (host) return host;
  // Nothing is free of others, so those are waited for; all in one order, so that nobody waits in a circle.
  const hosts = await tx.query(`select host.name ${HOSTS} order by host.name for update of host`, [
    region,
    serviceCode,
  ]);
  if (hosts.length) return claim('');
  const [needy] = await tx.query(`select 1 from catalog_item tier where code = $1 and ${NEEDS_HOSTS_SQL}`, [
    serviceCode,
  ]);
  return needy ? undefined : null;
}

const claimSql = (wait: string) => `
  with picked as (
      select host.name, ${needSql('vcpus')} as vcpus, ${needSql('memoryMb')} as memory_mb, ${needSql('diskGb')} as disk_gb
      ${HOSTS} and host.state = 'ACTIVE' and ${ROOM_SQL} > 0
      order by coalesce(host.name = $5, false), exists (select from placement where placement.order_number = $3 and placement.host = host.name),
        (host.memory_mb - host.claimed_memory_mb) * (0.75 + random() / 2) desc
      limit 1 for update of host ${wait}),
    claimed as (
      update host set machines = machines + 1, claimed_vcpus = claimed_vcpus + picked.vcpus,
        claimed_memory_mb = claimed_memory_mb + picked.memory_mb, claimed_disk_gb = claimed_disk_gb + picked.disk_gb
      from picked where host.name = picked.name)
  insert into placement (order_number, generation, resizing, host, vcpus, memory_mb, disk_gb)
  select $3, $4, false, name, vcpus, memory_mb, disk_gb from picked returning host`;

/**
 * Whether there is no room only because a host is drained or out of reach: then it is worth waiting for. Not where the
 * operator's own ceiling is reached.
 */
export async function isWorthWaiting(db: Queryable, { region, serviceCode }: Omit<Machine, 'orderNumber'>) {
  const [found] = await db.query<{ waits: boolean | null }>(
    `select exists (select from stock where region_code = $1 and service_code = $2 and claimed < total)
        and not bool_or(host.state = 'ACTIVE' and ${ROOM_SQL} > 0)
        and bool_or(host.state <> 'ACTIVE' and ${ROOM_SQL} > 0) as waits ${HOSTS}`,
    [region, serviceCode],
  );
  return found?.waits === true;
}

/** Claims what a larger tier needs more, where the machine is. @returns whether there was room */
export async function claimMore(tx: Transaction, machine: Machine): Promise<boolean> {
  const { orderNumber, generation, serviceCode } = machine;
  const [placed] = await tx.query(
    'select 1 from placement where order_number = $1 and generation = $2 and not resizing',
    [orderNumber, generation],
  );
  if (!placed) return true; // it is on no host that is counted
  const more = await tx.query(MORE, [orderNumber, generation, serviceCode]);
  return more.length > 0;
}
const MORE = `
  with needed as (
      select placement.host, ${needSql('vcpus')} - placement.vcpus as vcpus,
        ${needSql('memoryMb')} - placement.memory_mb as memory_mb, ${needSql('diskGb')} - placement.disk_gb as disk_gb
      from placement, catalog_item tier
      where tier.code = $3 and placement.order_number = $1 and placement.generation = $2 and not placement.resizing),
    claimed as (
      update host set claimed_vcpus = claimed_vcpus + needed.vcpus,
        claimed_memory_mb = claimed_memory_mb + needed.memory_mb, claimed_disk_gb = claimed_disk_gb + needed.disk_gb
      from needed where host.name = needed.host and host.state <> 'OFFLINE'
        and host.claimed_vcpus + needed.vcpus <= host.vcpus * host.vcpu_overcommit
        and host.claimed_memory_mb + needed.memory_mb <= host.memory_mb
        and host.claimed_disk_gb + needed.disk_gb <= host.disk_gb
      returning host.name)
  insert into placement (order_number, generation, resizing, host, vcpus, memory_mb, disk_gb)
  select $1, $2, true, host, vcpus, memory_mb, disk_gb from needed where exists (select from claimed) returning host`;

/** What a resize has claimed is the machine's own. */
export const keepMore = (tx: Transaction, orderNumber: string): Promise<unknown> =>
  tx.query(
    `with more as (delete from placement where order_number = $1 and resizing returning *)
    update placement set vcpus = placement.vcpus + more.vcpus, memory_mb = placement.memory_mb + more.memory_mb,
      disk_gb = placement.disk_gb + more.disk_gb
    from more where placement.order_number = $1 and placement.generation = more.generation and not placement.resizing`,
    [orderNumber],
  );

/** What a resize has claimed is free again. */
export const freeMore = (tx: Transaction, orderNumber: string): Promise<unknown> =>
  tx.query(freeSql('order_number = $1 and resizing'), [orderNumber]);

/** Gives back what one generation has claimed. Only for what is confirmed absent. */
export const freeGeneration = (tx: Transaction, orderNumber: string, generation: number): Promise<unknown> =>
  tx.query(freeSql('order_number = $1 and generation = $2'), [orderNumber, generation]);

/** Gives back what all machines of an order have claimed. Only for what is confirmed absent. */
export const freeHosts = (tx: Transaction, orderNumber: string): Promise<unknown> =>
  tx.query(freeSql('order_number = $1'), [orderNumber]);

const freeSql = (which: string) => `
  with gone as (delete from placement where ${which} returning *),
    sums as (
      select host, sum(vcpus)::int as vcpus, sum(memory_mb)::int as memory_mb, sum(disk_gb)::int as disk_gb,
        count(*) filter (where not resizing)::int as machines
      from gone group by host)
  update host set machines = host.machines - sums.machines, claimed_vcpus = claimed_vcpus - sums.vcpus,
    claimed_memory_mb = claimed_memory_mb - sums.memory_mb, claimed_disk_gb = claimed_disk_gb - sums.disk_gb
  from sums where host.name = sums.host`;
