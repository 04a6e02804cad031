/** Hosts: the machines of servers run on them. Their states, their capacity, and the controllers of bare-metal hosts. */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Actor } from '../history/audit.ts';
import { OPERATOR_ACCOUNT } from '../history/audit.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { record } from '../history/record.ts';
import { transition } from '../history/transition.ts';
import { kindOfTierSql, needsHostsSql, OWN_HOST_SQL, openEngineSql } from './engine.ts';
import { freePlacesSql } from './place.ts';

export const BMC_PROTOCOLS = ['IPMI', 'REDFISH'] as const;
export const FIRMWARES = ['BIOS', 'UEFI'] as const;

/** The access to the controller of a bare-metal host. */
export interface Bmc {
  protocol: (typeof BMC_PROTOCOLS)[number];
  address: string;
  user: string;
  password: string;
  /** PEM of the certificate by which a driver trusts the controller (Redfish). */
  certificate?: string | null | undefined;
}

export const HOST_STATES = ['ACTIVE', 'DRAINING', 'EVACUATING', 'OFFLINE'] as const;
export type HostState = (typeof HOST_STATES)[number];

export const Host = entity('host', {
  /** The name that the engine uses. */
  name: column.key(),
  regionCode: column.text(),
  kind: column.oneOf('VPS', 'DEDICATED'),
  /** The name of its engine. */
  driver: column.text(),
  state: defaulting(column.oneOf(...HOST_STATES), "'ACTIVE'"),
  vcpus: column.int(),
  memoryMb: column.int(),
  diskGb: column.int(),
  /** The factor by which vCPUs are oversold. Memory and disk are never oversold. */
  vcpuOvercommit: defaulting(column.real(), 1),
  claimedVcpus: defaulting(column.int(), 0),
  claimedMemoryMb: defaulting(column.int(), 0),
  claimedDiskGb: defaulting(column.int(), 0),
  machines: defaulting(column.int(), 0),
  /** DEDICATED only: the tier as which the host is sold. It holds one machine. */
  serviceCode: nullable(column.text()),
  bmcProtocol: nullable(column.oneOf(...BMC_PROTOCOLS)),
  /** IPMI: a name or an IPv4 address, with a port unless it is 623. Redfish: the origin of its URL. */
  bmcAddress: nullable(column.text()),
  bmcUser: nullable(column.text()),
  /** Sealed. */
  bmcPassword: nullable(column.bytes()),
  /** PEM of the certificate to trust (Redfish). Null: one of a public authority. */
  bmcCertificate: nullable(column.text()),
  /** The MAC address of the interface that boots from the network; lower case, with colons. */
  mac: nullable(column.text()),
  /** All disks of the host, by the names of /dev/disk/by-id or serial numbers. The first gets the system. */
  disks: column.textArray(),
  /** Whether the operator vouches that only the service and this host are in the network that it boots from. */
  bootNetworkIsolated: defaulting(column.boolean(), 'false'),
  firmware: nullable(column.oneOf(...FIRMWARES)),
  /**
   * The users that its controller had before the last machine, as `id:name:privilege`. The operator freed the host
   * (`declareWiped`), so the driver compares them before the next machine. Null: there is nothing to compare.
   */
  bmcUsers: nullable({ ...column.textArray(), default: undefined }),
  /** Why its engine reports it offline, and since when; null while it does not. */
  trouble: nullable(column.text()),
  troubleAt: nullable(column.timestamp()),
  /** Grows with each change of its settings by an operator. */
  revision: defaulting(column.int(), 1),
  createdAt: column.now(),
  updatedAt: column.now(),
});
export type Host = RowOf<typeof Host>;

export const BMC_PASSWORD = sealedColumn(Host, 'bmcPassword', 'name');

/**
 * Orders place machines on ACTIVE hosts only. The operator drains a host, and its engine reports it OFFLINE; machines stay
 * in both states. The operator evacuates a host: workers move its machines away.
 */
export const HOST_LIFECYCLE: Lifecycle<Host, HostState> = {
  table: Host,
  key: 'name',
  state: 'state',
  transitions: {
    ACTIVE: ['DRAINING', 'EVACUATING', 'OFFLINE'],
    DRAINING: ['ACTIVE', 'EVACUATING'],
    EVACUATING: ['ACTIVE', 'DRAINING'],
    OFFLINE: ['ACTIVE', 'DRAINING', 'EVACUATING'],
  },
};

/**
 * Bare-metal hosts that have all that the driver needs, by name. It includes draining hosts, whose machines still run.
 * $1 the name of a host, or null for all.
 */
export const FIND_BARE_METAL_HOSTS = statement(Host.columns)`
  select ${columnsOf(Host)} from host
  where kind = 'DEDICATED' and driver = 'bmc' and bmc_password is not null and mac is not null
    and ($1::text is null or name = $1) order by name`;

/** The dedicated hosts that an order could get now. */
export const FIND_FREE_DEDICATED_HOSTS = statement({ name: column.text() })`
  select name from host where kind = 'DEDICATED' and state = 'ACTIVE' and machines = 0 order by name for update`;

/** The need of a tier, in a query that calls it `tier`. Dedicated servers need 0: they are sold as a whole. */
export const needSql = (column: 'vcpus' | 'memoryMb' | 'diskGb'): string =>
  `case tier.kind when 'vps' then (tier.details->>'${column}')::int else 0 end`;

/** Whether the driver can boot a host safely, and knows its disks; see `unready` of the driver's inventory. */
const READY_SQL = `(host.driver <> 'bmc' or (host.disks <> '{}' and (host.boot_network_isolated or host.bmc_protocol = 'REDFISH')))`;

/** Whether a host still has a deployment on it, even one of a cancelled order or a retired one. */
const OCCUPIED_SQL = `exists (select from deployment where deployment.box = host.name or deployment.mac = host.mac)`;

/** The number of machines of the tier `tier` that fit on the host `host`, in every state of the host. */
export const ROOM_SQL = `
  case when host.kind = 'DEDICATED' then
    case when host.service_code = tier.code and host.machines = 0 and ${READY_SQL} and not ${OCCUPIED_SQL} then 1 else 0 end
  else greatest(0, least(
    floor((host.vcpus * host.vcpu_overcommit - host.claimed_vcpus) / greatest((tier.details->>'vcpus')::int, 1))::int,
    (host.memory_mb - host.claimed_memory_mb) / greatest((tier.details->>'memoryMb')::int, 1),
    (host.disk_gb - host.claimed_disk_gb) / greatest((tier.details->>'diskGb')::int, 1))) end`;

/** The condition for hosts that can hold machines of the tier `tier` in a region, given as an expression. */
export const hostsSql = (region: string): string =>
  `host.region_code = ${region} and host.kind = ${kindOfTierSql('tier')} and ${OWN_HOST_SQL}`;

/**
 * Whether a host can get machines: it is active, and its engine as well.
 * @param image the code of the image that the engine needs to have; absent: any
 */
export const openHostSql = (image?: string): string => `host.state = 'ACTIVE' and ${openEngineSql(image)}`;

/**
 * The number of machines that can still be ordered, in a query with `stock` and `tier`. Free places limit it. Active hosts
 * limit it, too, where the region has hosts of that kind or the engine needs them. The query counts places up to `most`, by
 * default as far as a level of stock needs it. With an image, it counts those whose engine has it.
 */
export const freeSql = ({ most, image }: { most?: 'all'; image?: string } = {}): string => `
  least(${freePlacesSql(most)}, coalesce((
    select sum(case when ${openHostSql(image)} then ${ROOM_SQL} else 0 end)::int
    from host where ${hostsSql('stock.region_code')}), case when ${needsHostsSql(image)} then 0 else 2147483647 end))`;

const { name, kind, state, vcpus, memoryMb, diskGb } = Host.columns;
const SOLD = { name, kind, state, vcpus, memoryMb, diskGb };
/** A host as the operator sells it. */
export type SoldHost = Row<typeof SOLD>;
/** The hosts of the engine $1, as the operator sells them. */
export const FIND_HOSTS_OF_ENGINE = statement(SOLD)`
  select name, kind, state, vcpus, memory_mb, disk_gb from host where driver = $1 order by name`;
/**
 * Notes why the hosts of the engine $1 are offline, as it told. $2 the names and reasons as JSON; null: the host is online. A host
 * that it does not mention keeps its reason.
 */
export const NOTE_HOST_TROUBLES = statement({})`
  update host set trouble = told.trouble, trouble_at = case when told.trouble is not null then coalesce(trouble_at, now()) end
  from jsonb_to_recordset($2::jsonb) as told(name text, trouble text)
  where host.driver = $1 and host.name = told.name and host.trouble is distinct from told.trouble`;
/** The hosts that are offline, those of the longest time first, at most $1. */
export const LIST_OFFLINE_HOSTS = statement({ name, trouble: Host.columns.trouble, troubleAt: Host.columns.troubleAt })`
  select name, trouble, trouble_at from host where state = 'OFFLINE' order by trouble_at, name limit $1::int`;
/** The regions with a host that its engine reports offline. */
export const FIND_OFFLINE_REGIONS = statement({ regionCode: column.text() })`
  select distinct region_code from host where state = 'OFFLINE'`;

/**
 * Moves a host to another state, and records it for the operator.
 * @returns the host after the move, or undefined where its state does not allow it
 */
export async function moveHost(tx: Transaction, name: string, to: HostState, actor: Actor): Promise<Host | undefined> {
  const moved = await transition(tx, HOST_LIFECYCLE, name, to);
  if (moved) await record(tx, OPERATOR_ACCOUNT, name, { type: 'host.updated', actor, data: { state: to } });
  return moved;
}
