/**
 * Picks the host of a machine, in the transaction that claims the rest of its room. What is claimed is written down as a
 * placement, and just that is given back. The catalog counts with the same expression, so it offers what fits.
 *
 * A transaction that needs several hosts locks them in the order of their names, and then their placements.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { NEEDS_HOSTS_SQL } from '../../../entities/servers/engine.ts';
import { hostsSql, needSql, ROOM_SQL } from '../../../entities/servers/host.ts';
import type { Server } from '../../../entities/servers/server.ts';

export type Machine = Pick<Server, 'orderNumber' | 'generation' | 'region' | 'serviceCode'>;

/** What a statement claims for: expressions, such as parameters. */
export interface ClaimSql {
  region: string;
  serviceCode: string;
  orderNumber: string;
  generation: string;
}

/** Hosts of a region that the tier could be on: of its kind, and of the engine that makes machines of that kind now. */
const hostsOf = ({ region, serviceCode }: Pick<ClaimSql, 'region' | 'serviceCode'>): string =>
  `from catalog_item tier join host on ${hostsSql(region)} where tier.code = ${serviceCode}`;

/** Whether a machine has to be on a host. Otherwise the places decide alone. */
export const needsHostSql = (claim: ClaimSql): string => `(
  exists (select ${hostsOf(claim)})
  or exists (select from catalog_item tier where tier.code = ${claim.serviceCode} and ${NEEDS_HOSTS_SQL}))`;

/**
 * Picks a host with room, and locks it: an active one with much free memory, at some random, so that many orders at once
 * spread out. `first` sorts before that.
 */
export const pickHostSql = (claim: ClaimSql, wait: '' | 'skip locked', first = ''): string => `
  select host.name as host, ${needSql('vcpus')} as vcpus, ${needSql('memoryMb')} as memory_mb, ${needSql('diskGb')} as disk_gb
  ${hostsOf(claim)} and host.state = 'ACTIVE' and ${ROOM_SQL} > 0
  order by ${first} (host.memory_mb - host.claimed_memory_mb) * (0.75 + random() / 2) desc
  limit 1 for update of host ${wait}`;

/** CTEs that claim what `picked` says, which may name no host. */
export const holdHostSql = ({ orderNumber, generation }: ClaimSql, picked: string): string => `
  host_held as (
    update host set machines = machines + 1, claimed_vcpus = claimed_vcpus + picked.vcpus,
      claimed_memory_mb = claimed_memory_mb + picked.memory_mb, claimed_disk_gb = claimed_disk_gb + picked.disk_gb
    from ${picked} picked where host.name = picked.host),
  placed as (
    insert into placement (order_number, generation, resizing, host, vcpus, memory_mb, disk_gb)
    select ${orderNumber}, ${generation}::int, false, host, vcpus, memory_mb, disk_gb from ${picked} picked
    where host is not null returning host)`;

/** The parameters of the statements here. */
const GIVEN: ClaimSql = { region: '$1', serviceCode: '$2', orderNumber: '$3', generation: '$4' };

/** Locks all hosts that a machine could be on, and those that machines of its order are on. */
export const lockHosts = (tx: Transaction, { orderNumber, region, serviceCode }: Machine): Promise<unknown> =>
  tx.query(
    `select from host
      where name in (select host.name ${hostsOf(GIVEN)}) or name in (select host from placement where order_number = $3)
      order by name for update`,
    [region, serviceCode, orderNumber],
  );

/** Locks all hosts of a driver. */
export const lockHostsOf = (tx: Transaction, driver: string): Promise<unknown> =>
  tx.query('select from host where driver = $1 order by name for update', [driver]);

/**
 * Claims room for the next machine of an order, under `lockHosts`. A host that a machine of the same order was given up on,
 * such as `avoided`, is the last resort.
 * @returns the host; null where it needs none; undefined: no room
 */
export async function claimHost(
  tx: Transaction,
  { orderNumber, generation, region, serviceCode }: Machine,
  avoided: string | null,
): Promise<string | null | undefined> {
  const [claimed] = await tx.query<{ host: string | null; needed: boolean }>(CLAIM_NEXT, [
    ...[region, serviceCode, orderNumber, generation, avoided],
  ]);
  return claimed!.host ?? (claimed!.needed ? undefined : null);
}
const GIVEN_UP = `coalesce(host.name = $5, false),
  exists (select from placement where placement.order_number = $3 and placement.host = host.name),`;
const CLAIM_NEXT = `
  with free_host as (${pickHostSql(GIVEN, '', GIVEN_UP)}), ${holdHostSql(GIVEN, 'free_host')}
  select (select host from placed) as host, ${needsHostSql(GIVEN)} as needed`;

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

/** Gives back what generations of orders have claimed. Only for what is confirmed absent. */
export const freeGenerations = (
  tx: Transaction,
  gone: readonly { orderNumber: string; generation: number }[],
): Promise<unknown> =>
  tx.query(freeSql('(order_number, generation) in (select * from unnest($1::text[], $2::int[]))'), [
    gone.map(({ orderNumber }) => orderNumber),
    gone.map(({ generation }) => generation),
  ]);

/** Gives back what all machines of an order have claimed. Only for what is confirmed absent. */
export const freeHosts = (tx: Transaction, orderNumber: string): Promise<unknown> =>
  tx.query(freeSql('order_number = $1'), [orderNumber]);

const freeSql = (which: string) => `
  with locked as (
      select name from host where name in (select host from placement where ${which}) order by name for update),
    gone as (delete from placement where ${which} and host in (select name from locked) returning *),
    sums as (
      select host, sum(vcpus)::int as vcpus, sum(memory_mb)::int as memory_mb, sum(disk_gb)::int as disk_gb,
        count(*) filter (where not resizing)::int as machines
      from gone group by host)
  update host set machines = host.machines - sums.machines, claimed_vcpus = claimed_vcpus - sums.vcpus,
    claimed_memory_mb = claimed_memory_mb - sums.memory_mb, claimed_disk_gb = claimed_disk_gb - sums.disk_gb
  from sums where host.name = sums.host`;
