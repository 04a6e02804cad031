/** Hosts: where machines are made, how much room they have, and what is claimed of it. */
import type { Actor } from './audit.ts';
import { OPERATOR_ACCOUNT } from './audit.ts';
import type { Queryable, Transaction } from './database.ts';
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
} from './entity.ts';
import { record } from './record.ts';
import type { Vault } from './secrets.ts';

export const HOST_STATES = ['ACTIVE', 'DRAINING', 'OFFLINE'] as const;
export type HostState = (typeof HOST_STATES)[number];
export const BMC_PROTOCOLS = ['IPMI', 'REDFISH'] as const;

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
    /** A name or an address, with a port where it is not the protocol's own. */
    bmcAddress: nullable(text()),
    bmcUser: nullable(text()),
    /** Sealed. */
    bmcPassword: nullable(bytes()),
    /** Of the interface that it boots from. */
    mac: nullable(text()),
    createdAt: now(),
    updatedAt: now(),
  },
  [{ name: 'host_region', columns: ['regionCode', 'kind'] }],
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

/** How many machines of the tier `tier` a host `host` has room for, whatever its state. */
export const ROOM_SQL = `
  case when host.kind = 'DEDICATED' then case when host.service_code = tier.code and host.machines = 0 then 1 else 0 end
  else greatest(0, least(
    floor((host.vcpus * host.vcpu_overcommit - host.claimed_vcpus) / greatest((tier.details->>'vcpus')::int, 1))::int,
    (host.memory_mb - host.claimed_memory_mb) / greatest((tier.details->>'memoryMb')::int, 1),
    (host.disk_gb - host.claimed_disk_gb) / greatest((tier.details->>'diskGb')::int, 1))) end`;

/** Which hosts could hold machines of the tier `tier` in the region that the expression names. */
export const hostsSql = (region: string): string =>
  `host.region_code = ${region} and host.kind = case tier.kind when 'vps' then 'VPS' else 'DEDICATED' end`;

/**
 * How many machines of a tier can still be ordered, in a query that has `stock` and calls the tier `tier`: as many as the
 * operator offers and, where the region has hosts of that kind, as still fit on the active ones.
 */
export const FREE_SQL = `
  least(stock.total - stock.claimed, coalesce((
    select sum(case host.state when 'ACTIVE' then ${ROOM_SQL} else 0 end)::int
    from host where ${hostsSql('stock.region_code')}), 2147483647))`;

/** @returns the host as it is then, or undefined where its state does not allow that */
export async function moveHost(tx: Transaction, name: string, to: HostState, actor: Actor): Promise<Host | undefined> {
  const from = HOST_STATES.filter((state) => TRANSITIONS[state].includes(to));
  const [moved] = await tx.query<Host>(
    `update host set state = $2, updated_at = now() where name = $1 and state = any($3) returning ${columnsOf(Host)}`,
    [name, to, from],
  );
  if (moved)
    await record(tx, OPERATOR_ACCOUNT, name, { type: 'host.updated', resource: 'host', actor, data: { state: to } });
  return moved;
}

/** What the password of a BMC is sealed for. */
export const bmcPasswordContext = (host: string): string => `host.bmc_password:${host}`;

/** How the management controller of a dedicated server is reached. */
export interface Box {
  protocol: (typeof BMC_PROTOCOLS)[number];
  address: string;
  user: string;
  password: string;
  mac: string;
}

/** @returns undefined where there is no such host, or none with a BMC */
export async function boxOf(db: Queryable, vault: Vault, name: string): Promise<Box | undefined> {
  const [host] = await db.query<Host>(`select ${columnsOf(Host)} from host where name = $1`, [name]);
  if (!host?.bmcProtocol || !host.bmcPassword) return undefined;
  return {
    protocol: host.bmcProtocol,
    address: host.bmcAddress ?? '',
    user: host.bmcUser ?? '',
    password: vault.open(host.bmcPassword, bmcPasswordContext(name)),
    mac: host.mac ?? '',
  };
}
