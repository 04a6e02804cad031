/** Hosts: where machines are made, how much room they have, and how a bare-metal host is reached. */
import {
  boolean,
  bytes,
  columnsOf,
  defaulting,
  entity,
  int,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  real,
  text,
} from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Actor } from '../history/audit.ts';
import { OPERATOR_ACCOUNT } from '../history/audit.ts';
import { record } from '../history/record.ts';
import { NEEDS_HOSTS_SQL, OWN_HOST_SQL } from './engine.ts';
import { freePlacesSql } from './place.ts';

export const BMC_PROTOCOLS = ['IPMI', 'REDFISH'] as const;
export const FIRMWARES = ['BIOS', 'UEFI'] as const;

/** How the controller of a host is reached. */
export interface Bmc {
  protocol: (typeof BMC_PROTOCOLS)[number];
  address: string;
  user: string;
  password: string;
  /** PEM of a certificate that vouches for the controller (Redfish). */
  certificate?: string | null | undefined;
}

/** What the password of a BMC is sealed for. */
export const bmcPasswordContext = (host: string): string => `host.bmc_password:${host}`;

export const HOST_STATES = ['ACTIVE', 'DRAINING', 'OFFLINE'] as const;
export type HostState = (typeof HOST_STATES)[number];

/** Only ACTIVE hosts get machines. DRAINING is the operator's word, OFFLINE the engine's; in both, machines stay. */
const TRANSITIONS: Readonly<Record<HostState, readonly HostState[]>> = {
  ACTIVE: ['DRAINING', 'OFFLINE'],
  DRAINING: ['ACTIVE'],
  OFFLINE: ['ACTIVE', 'DRAINING'],
};

export const Host = entity(
  'host',
  {
    /** As the engine calls it. */
    name: key(),
    regionCode: text(),
    kind: oneOf('VPS', 'DEDICATED'),
    driver: text(),
    state: defaulting(oneOf(...HOST_STATES), "'ACTIVE'"),
    vcpus: int(),
    memoryMb: int(),
    diskGb: int(),
    /** How often each vCPU may be sold. Memory and disk are sold once. */
    vcpuOvercommit: defaulting(real(), 1),
    claimedVcpus: defaulting(int(), 0),
    claimedMemoryMb: defaulting(int(), 0),
    claimedDiskGb: defaulting(int(), 0),
    machines: defaulting(int(), 0),
    /** Of a dedicated server, which holds one machine: the tier that it is sold as, and how it is reached. */
    serviceCode: nullable(text()),
    bmcProtocol: nullable(oneOf(...BMC_PROTOCOLS)),
    /** IPMI: a name or an IPv4 address, with a port where it is not 623. Redfish: the origin of its URL. */
    bmcAddress: nullable(text()),
    bmcUser: nullable(text()),
    /** Sealed. */
    bmcPassword: nullable(bytes()),
    /** PEM of a certificate that vouches for it (Redfish). Null: the public authorities do. */
    bmcCertificate: nullable(text()),
    /** Of the interface that it boots from; lower case, with colons. */
    mac: nullable(text()),
    /** The device that systems go to, and that is wiped, such as /dev/nvme0n1. */
    disk: nullable(text()),
    firmware: nullable(oneOf(...FIRMWARES)),
    createdAt: now(),
    updatedAt: now(),
  },
  [
    { name: 'host_region', columns: ['regionCode', 'kind'] },
    { name: 'host_mac', columns: ['mac'], unique: true },
    { name: 'host_bmc_address', columns: ['bmcAddress'], unique: true },
  ],
);
export type Host = RowOf<typeof Host>;

/**
 * What a machine claims of its host, so that just that is given back. A generation that was given up keeps its claim until
 * it is confirmed absent.
 */
export const Placement = entity(
  'placement',
  {
    orderNumber: key(),
    generation: { ...int(), primary: true },
    /** The difference that a resize claims until it has come to its end. */
    resizing: { ...boolean(), primary: true },
    host: text(),
    vcpus: int(),
    memoryMb: int(),
    diskGb: int(),
  },
  [{ name: 'placement_host', columns: ['host'] }],
);
export type Placement = RowOf<typeof Placement>;

/** What a tier needs, in a query that calls it `tier`; a dedicated server is sold as a whole. */
export const needSql = (column: 'vcpus' | 'memoryMb' | 'diskGb'): string =>
  `case tier.kind when 'vps' then (tier.details->>'${column}')::int else 0 end`;

/** Whether a host still has something of another machine on it: also one whose order was given up, or that was retired. */
const SOILED_SQL = `exists (select from deployment where deployment.box = host.name or deployment.mac = host.mac)`;

/** How many machines of the tier `tier` a host `host` has room for, whatever its state. */
export const ROOM_SQL = `
  case when host.kind = 'DEDICATED' then
    case when host.service_code = tier.code and host.machines = 0 and not ${SOILED_SQL} then 1 else 0 end
  else greatest(0, least(
    floor((host.vcpus * host.vcpu_overcommit - host.claimed_vcpus) / greatest((tier.details->>'vcpus')::int, 1))::int,
    (host.memory_mb - host.claimed_memory_mb) / greatest((tier.details->>'memoryMb')::int, 1),
    (host.disk_gb - host.claimed_disk_gb) / greatest((tier.details->>'diskGb')::int, 1))) end`;

/** Which hosts could hold machines of the tier `tier` in the region that the expression names: those of its engine. */
export const hostsSql = (region: string): string =>
  `host.region_code = ${region} and host.kind = case tier.kind when 'vps' then 'VPS' else 'DEDICATED' end and ${OWN_HOST_SQL}`;

/**
 * How many machines of a tier can still be ordered, in a query that has `stock` and calls the tier `tier`: as many as there
 * are free places and, where the region has hosts of that kind or the engine needs some, as still fit on the active ones.
 * Places are counted no further than `most`: by default only as far as a level of stock needs it.
 */
export const freeSql = (most?: 'all'): string => `
  least(${freePlacesSql(most)}, coalesce((
    select sum(case host.state when 'ACTIVE' then ${ROOM_SQL} else 0 end)::int
    from host where ${hostsSql('stock.region_code')}), case when ${NEEDS_HOSTS_SQL} then 0 else 2147483647 end))`;

/** @returns the host as it is then, or undefined where its state does not allow that */
export async function moveHost(tx: Transaction, name: string, to: HostState, actor: Actor): Promise<Host | undefined> {
  const from = HOST_STATES.filter((state) => TRANSITIONS[state].includes(to));
  const [moved] = await tx.query<Host>(
    `update host set state = $2, updated_at = now() where name = $1 and state = any($3) returning ${columnsOf(Host)}`,
    [name, to, from],
  );
  if (moved) await record(tx, OPERATOR_ACCOUNT, name, { type: 'host.updated', actor, data: { state: to } });
  return moved;
}
