/**
 * Placements: the claims of machines on hosts, so that each host gets back exactly that. The catalog counts with the same
 * expressions, so it offers only machines that fit.
 *
 * A transaction that needs several hosts locks them in the order of their names, and then their placements.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import { ENGINE_OF_HOST_SQL, needsHostsSql } from './engine.ts';
import { hostsSql, needSql, openHostSql, ROOM_SQL } from './host.ts';

/** A generation that was given up keeps its placement until it is confirmed absent. */
export const Placement = entity('placement', {
  orderNumber: column.key(),
  generation: { ...column.int(), primary: true },
  /** Whether it is the difference that a resize claims until it ends. */
  resizing: { ...column.boolean(), primary: true },
  /** Whether it is on the host to which the machine moves, until the move ends. */
  moving: { ...defaulting(column.boolean(), 'false'), primary: true },
  /** Whether a move failed, so the machine stays until the operator evacuates its host again. */
  unmoved: defaulting(column.boolean(), 'false'),
  host: column.text(),
  vcpus: column.int(),
  memoryMb: column.int(),
  diskGb: column.int(),
});
export type Placement = RowOf<typeof Placement>;

/** The machine of a claim, as expressions of the statement, such as parameters. */
export interface ClaimSql {
  region: string;
  serviceCode: string;
  orderNumber: string;
  generation: string;
  /** The code of the image that its engine needs to have. */
  image: string;
}
/** The claim of a server. $1 region, $2 service code, $3 order number, $4 generation. */
export const GIVEN: ClaimSql = {
  ...{ region: '$1', serviceCode: '$2', orderNumber: '$3', generation: '$4' },
  image: '(select os from server where order_number = $3)',
};

/** Hosts of a region that can hold the tier, by their kind and engine. */
const hostsOf = ({ region, serviceCode }: Pick<ClaimSql, 'region' | 'serviceCode'>): string =>
  `from catalog_item tier join host on ${hostsSql(region)} where tier.code = ${serviceCode}`;

/** Whether a machine has to be on a host. Otherwise places alone limit it. */
export const needsHostSql = (claim: ClaimSql): string => `(
  exists (select ${hostsOf(claim)})
  or exists (select from catalog_item tier where tier.code = ${claim.serviceCode} and ${needsHostsSql(claim.image)}))`;

/**
 * Picks an active host with room, and locks it. It prefers free memory, with some chance, so that simultaneous orders
 * spread out. `first` sorts before that, and `where` leaves hosts out.
 */
export const pickHostSql = (claim: ClaimSql, wait: '' | 'skip locked', { first = '', where = 'true' } = {}): string => `
  select host.name as host, ${ENGINE_OF_HOST_SQL} as engine, ${needSql('vcpus')} as vcpus,
    ${needSql('memoryMb')} as memory_mb, ${needSql('diskGb')} as disk_gb
  ${hostsOf(claim)} and ${openHostSql(claim.image)} and ${ROOM_SQL} > 0 and ${where}
  order by ${first} (host.memory_mb - host.claimed_memory_mb) * (0.75 + random() / 2) desc
  limit 1 for update of host ${wait}`;

/** CTEs that claim room on the host of the relation `picked`, which may name none. */
export const holdHostSql = ({ orderNumber, generation }: ClaimSql, picked: string): string => `
  host_held as (
    update host set machines = machines + 1, claimed_vcpus = claimed_vcpus + picked.vcpus,
      claimed_memory_mb = claimed_memory_mb + picked.memory_mb, claimed_disk_gb = claimed_disk_gb + picked.disk_gb
    from ${picked} picked where host.name = picked.host),
  placed as (
    insert into placement (order_number, generation, resizing, host, vcpus, memory_mb, disk_gb)
    select ${orderNumber}, ${generation}::int, false, host, vcpus, memory_mb, disk_gb from ${picked} picked
    where host is not null returning host)`;

/** Locks all hosts that a machine can be on, and those of its order. $1 region, $2 service code, $3 order number. */
export const LOCK_HOSTS = statement({})`
  select from host
  where name in (select host.name ${hostsOf(GIVEN)}) or name in (select host from placement where order_number = $3)
  order by name for update`;
/** Locks all hosts of the engines $1. */
export const LOCK_HOSTS_OF_ENGINES = statement({})`select from host where driver = any($1) order by name for update`;

/** Whether the claim of the relation `needed` fits on the host `host`. */
const FITS_SQL = `host.claimed_vcpus + needed.vcpus <= host.vcpus * host.vcpu_overcommit
  and host.claimed_memory_mb + needed.memory_mb <= host.memory_mb
  and host.claimed_disk_gb + needed.disk_gb <= host.disk_gb`;

/** Locks the hosts with the names $1, and those of the order $2. */
export const LOCK_HOSTS_OF_MOVE = statement({})`
  select from host where name = any($1) or name in (select host from placement where order_number = $2)
  order by name for update`;
/**
 * Moves the claims of a machine to another host of its engine with room, under LOCK_HOSTS_OF_MOVE. Its claim for the move has to
 * be released before. $1 order number, $2 generation, $3 the new host, $4 engine.
 */
export const MOVE_PLACEMENT = statement({ moved: column.boolean() })`
  with needed as (
      select host as before, sum(vcpus)::int as vcpus, sum(memory_mb)::int as memory_mb, sum(disk_gb)::int as disk_gb,
        count(*) filter (where not resizing)::int as machines
      from placement where order_number = $1 and generation = $2 and host <> $3 group by host),
    target as (
      select name from host, needed
      where name = $3 and driver = $4 and kind = 'VPS' and ${FITS_SQL}),
    changes as (
      select target.name, vcpus, memory_mb, disk_gb, machines from target, needed
      union all select before, -vcpus, -memory_mb, -disk_gb, -machines from target, needed),
    counted as (
      update host set machines = host.machines + changes.machines, claimed_vcpus = claimed_vcpus + changes.vcpus,
        claimed_memory_mb = claimed_memory_mb + changes.memory_mb, claimed_disk_gb = claimed_disk_gb + changes.disk_gb
      from changes where host.name = changes.name),
    placed as (
      update placement set host = target.name, unmoved = false from target
      where order_number = $1 and generation = $2),
    told as (update server set host = target.name from target where order_number = $1 and generation = $2)
  select exists (select from target) as moved`;

/** The claim of a machine, in a query that calls it `own`. */
const OWN_SQL = 'not own.resizing and not own.moving';
/**
 * Whether a move goes on, in a query that calls its claims `own` and `moving`. A resize meanwhile needs another claim, and the
 * operator may have ended the evacuation.
 */
const OPEN_MOVE_SQL = `(source.state = 'EVACUATING'
  and exists (select from host target where target.name = moving.host and target.state = 'ACTIVE')
  and (own.vcpus, own.memory_mb, own.disk_gb) = (moving.vcpus, moving.memory_mb, moving.disk_gb)
  and not exists (select from placement more
    where more.order_number = own.order_number and more.generation = own.generation and more.resizing))`;

/** The move of a machine, and whether it goes on. $1 order number, $2 generation. */
export const READ_MOVE = statement({ to: column.text(), open: column.boolean() })`
  select moving.host as "to", ${OPEN_MOVE_SQL} as open
  from placement own join host source on source.name = own.host join placement moving
    on moving.order_number = own.order_number and moving.generation = own.generation and moving.moving
  where own.order_number = $1 and own.generation = $2 and ${OWN_SQL}`;
/**
 * The machines of stable servers that move, or that are on evacuated hosts of the engine $1. The largest come first.
 * `task`: the state of the server's task, if it has one; `outages`: its attempts without an answer.
 */
export const FIND_LEAVING_MACHINES = statement({
  ...{
    order: column.text(),
    generation: column.int(),
    accountId: column.text(),
    kind: column.oneOf('VPS', 'DEDICATED'),
  },
  ...{ host: column.text(), unmoved: column.boolean(), to: nullable(column.text()), open: nullable(column.boolean()) },
  ...{ task: nullable(column.oneOf('READY', 'DEAD')), outages: column.int() },
})`
  select own.order_number as "order", own.generation, server.account_id, server.kind, own.host, own.unmoved, moving.host as "to",
    case when moving.host is not null then ${OPEN_MOVE_SQL} end as open,
    task.state as task, coalesce(task.outages, 0) as outages
  from placement own join host source on source.name = own.host
    join server on server.order_number = own.order_number and server.generation = own.generation
    left join placement moving
      on moving.order_number = own.order_number and moving.generation = own.generation and moving.moving
    left join task on task.subject = own.order_number
  where source.driver = $1 and ${OWN_SQL} and (source.state = 'EVACUATING' or moving.host is not null)
    and server.status in ('RUNNING', 'STOPPED', 'SUSPENDED') and server.change is null
  order by own.memory_mb desc, own.order_number`;

/**
 * Claims room for a machine that leaves its host, under the lock of all hosts of its engine. `to` is null without room.
 * $1 order number, $2 generation, $3 the hosts that are online.
 */
export const CLAIM_MOVE = statement({ to: nullable(column.text()) })`
  with needed as (
      select own.host, own.vcpus, own.memory_mb, own.disk_gb from placement own
      where own.order_number = $1 and own.generation = $2 and ${OWN_SQL}),
    target as (
      select host.name, needed.vcpus, needed.memory_mb, needed.disk_gb
      from needed join host source on source.name = needed.host
        join host on host.driver = source.driver and host.region_code = source.region_code and host.kind = 'VPS'
      where source.state = 'EVACUATING' and host.state = 'ACTIVE' and host.name = any($3) and ${FITS_SQL}
      order by host.memory_mb - host.claimed_memory_mb desc, host.name limit 1),
    counted as (
      update host set machines = machines + 1, claimed_vcpus = claimed_vcpus + target.vcpus,
        claimed_memory_mb = claimed_memory_mb + target.memory_mb, claimed_disk_gb = claimed_disk_gb + target.disk_gb
      from target where host.name = target.name),
    placed as (
      insert into placement (order_number, generation, resizing, moving, host, vcpus, memory_mb, disk_gb)
      select $1, $2::int, false, true, name, vcpus, memory_mb, disk_gb from target returning host)
  select (select host from placed) as "to"`;
/** Notes that a move failed. $1 order number, $2 generation. */
export const NOTE_UNMOVED = statement({})`
  update placement own set unmoved = true where order_number = $1 and generation = $2 and ${OWN_SQL}`;
/** Lets the machines of the host $1 move again. */
export const FORGET_UNMOVED = statement({})`
  with again as (select order_number, generation from placement where host = $1 and unmoved order by order_number for update)
  update placement set unmoved = false from again
  where placement.order_number = again.order_number and placement.generation = again.generation`;

/** Hosts with a given-up machine of the same order come last, and of those the host $5. */
const GIVEN_UP_LAST = `coalesce(host.name = $5, false),
  exists (select from placement where placement.order_number = $3 and placement.host = host.name),`;
/**
 * Claims room for the next machine of an order, under LOCK_HOSTS. `needed` says whether it has to be on a host. $1 region,
 * $2 service code, $3 order number, $4 generation, $5 the host to avoid. $6 says whether it has to be on the
 * engine of the order.
 */
export const CLAIM_NEXT_HOST = statement({
  host: nullable(column.text()),
  engine: nullable(column.text()),
  needed: column.boolean(),
})`
  with free_host as (${pickHostSql(GIVEN, '', {
    first: GIVEN_UP_LAST,
    where: `(not $6::boolean or (select server.engine from server where order_number = $3) is not distinct from ${ENGINE_OF_HOST_SQL})`,
  })}), ${holdHostSql(GIVEN, 'free_host')}
  select (select host from placed) as host, (select engine from free_host) as engine, ${needsHostSql(GIVEN)} as needed`;

/**
 * Claims the additional need of a larger tier on the host of the machine. `placed` says whether the machine has a placement:
 * without one, the engine picks the host. $1 order number, $2 generation, $3 service code.
 */
export const CLAIM_RESIZE = statement({ placed: column.boolean(), claimed: column.boolean() })`
  with needed as (
      select placement.host, ${needSql('vcpus')} - placement.vcpus as vcpus,
        ${needSql('memoryMb')} - placement.memory_mb as memory_mb, ${needSql('diskGb')} - placement.disk_gb as disk_gb
      from placement, catalog_item tier
      where tier.code = $3 and placement.order_number = $1 and placement.generation = $2 and not placement.resizing
        and not placement.moving),
    claimed as (
      update host set claimed_vcpus = claimed_vcpus + needed.vcpus,
        claimed_memory_mb = claimed_memory_mb + needed.memory_mb, claimed_disk_gb = claimed_disk_gb + needed.disk_gb
      from needed where host.name = needed.host and host.state <> 'OFFLINE'
        and ${FITS_SQL}
      returning host.name),
    resizing as (
      insert into placement (order_number, generation, resizing, host, vcpus, memory_mb, disk_gb)
      select $1, $2, true, host, vcpus, memory_mb, disk_gb from needed where exists (select from claimed) returning host)
  select exists (select from placement where order_number = $1 and generation = $2 and not resizing) as placed,
    exists (select from resizing) as claimed`;
/** Adds the claim of a completed resize to the placement of the machine. $1 order number. */
export const KEEP_RESIZE = statement({})`
  with more as (delete from placement where order_number = $1 and resizing returning *)
  update placement set vcpus = placement.vcpus + more.vcpus, memory_mb = placement.memory_mb + more.memory_mb,
    disk_gb = placement.disk_gb + more.disk_gb
  from more where placement.order_number = $1 and placement.generation = more.generation and not placement.resizing
    and not placement.moving`;

/** Deletes the placements that the condition selects, and gives their claims back to the hosts. */
const releaseSql = (which: string) => `
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
/** Gives back the claim of a resize that failed. $1 order number. */
export const RELEASE_RESIZE = statement({})`${releaseSql('order_number = $1 and resizing')}`;
/** Gives back the claim of a move. $1 order number. */
export const RELEASE_MOVE = statement({})`${releaseSql('order_number = $1 and moving')}`;
/** Gives back the claims of machines that are confirmed absent. $1 order numbers, $2 their generations. */
export const RELEASE_GENERATIONS = statement({})`
  ${releaseSql('(order_number, generation) in (select * from unnest($1::text[], $2::int[]))')}`;
/** Gives back the claims of all machines of an order that are confirmed absent. $1 order number. */
export const RELEASE_HOSTS = statement({})`${releaseSql('order_number = $1')}`;
