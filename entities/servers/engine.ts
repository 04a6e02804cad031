/**
 * Engines make machines. Workers write those of their environment when they start, and the operator adds others. Queries that
 * count hosts read them, and a worker makes a driver for each.
 */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

export const ENGINE_STATES = ['ACTIVE', 'DRAINED'] as const;
export type EngineState = (typeof ENGINE_STATES)[number];
export const ENGINE_PRODUCTS = ['LXD', 'INCUS'] as const;
/** Virtual machines boot from images of their own, whose names in an engine end so. */
export const VM_SUFFIX = '-vm';

/** The way to an engine of the operator, and the parts of it that machines use. */
export interface EngineConnection {
  /** `unix:/path` or `https://host:8443`: one server, or several members of one cluster. */
  endpoints: string[];
  project: string;
  pool: string;
  network: string;
  nameservers: string[];
  openMail: boolean;
  /** PEM of our certificate; null over sockets. */
  clientCertificate: string | null;
  /** PEM of the certificate that we trust; null over sockets. */
  serverCertificate: string | null;
}

/** A member of a cluster, or a single server, as its engine told of it. */
export interface Member {
  name: string;
  /** An evacuated member is offline. */
  state: 'online' | 'offline';
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

/** A list of texts that has to be given. */
const { default: _, ...texts } = column.textArray();

export const Engine = entity('engine', {
  /** Engines of the environment have the name of their driver. */
  name: column.key(),
  /** The kinds of servers whose machines it makes: `VPS`, `DEDICATED`. */
  kinds: texts as column.Column<string[]>,
  /** Whether it makes machines only on hosts that the operator has added. */
  needsHosts: column.boolean(),
  /** Whether its machines are simulated. */
  simulated: column.boolean(),
  state: defaulting(column.oneOf(...ENGINE_STATES), "'ACTIVE'"),
  /** The bastion of all its hosts; null: each host has its own. */
  regionCode: nullable(column.text()),
  /** Null: the environment of the workers configures the engine. */
  connection: nullable(column.json<EngineConnection>()),
  /** PEM of the key of our certificate; sealed. */
  clientKey: nullable(column.bytes()),
  /** Grows with each change of the connection, so workers know that their driver is old. Added engines begin anywhere. */
  revision: defaulting(column.int(), 1),
  /** The answers of the last look that reached it. Null or empty: there is none yet, or its driver does not ask. */
  product: nullable(column.oneOf(...ENGINE_PRODUCTS)),
  version: nullable(column.text()),
  members: defaulting(column.json<Member[]>(), "'[]'"),
  /** The names of its images. Null: unknown. */
  images: nullable(texts as column.Column<string[]>),
  /** When a look last reached it. Null after a change of the connection: it gets no orders, and its machines are unknown. */
  seenAt: nullable(column.timestamp()),
  /** The error of the last look that failed; null after one that reached it. */
  trouble: nullable(column.text()),
  troubleAt: nullable(column.timestamp()),
  createdAt: column.now(),
  updatedAt: column.now(),
});
export type Engine = RowOf<typeof Engine>;

export const ENGINE_KEY = sealedColumn(Engine, 'clientKey', 'name');

/** The operator drains an engine: its machines stay, and it gets no new ones. */
export const ENGINE_LIFECYCLE: Lifecycle<Engine, EngineState> = {
  table: Engine,
  key: 'name',
  state: 'state',
  transitions: { ACTIVE: ['DRAINED'], DRAINED: ['ACTIVE'] },
};

/** Locks all engines, in the order in which a look notes them. */
export const LOCK_ENGINES = statement({})`select from engine order by name collate "C" for update`;
/** Writes an engine of the environment. $1 name, $2 kinds, $3 whether it needs hosts, $4 whether its machines are simulated. */
export const WRITE_ENGINE = statement({})`
  insert into engine (name, kinds, needs_hosts, simulated) values ($1, $2, $3, $4)
  on conflict (name) do update
    set kinds = excluded.kinds, needs_hosts = excluded.needs_hosts, simulated = excluded.simulated`;
/** Removes the engines that the environment does not configure any more, under LOCK_ENGINES. $1 the names of the others. */
export const REMOVE_OTHER_ENGINES = statement({})`
  delete from engine where connection is null and name <> all($1)`;

/**
 * Adds an engine of the operator, unless its name is taken. It begins with a random revision, because a removed engine of that
 * name had another connection. $1 name, $2 region, $3 connection, $4 sealed key.
 */
export const ADD_ENGINE = statement(Engine.columns)`
  insert into engine (name, kinds, needs_hosts, simulated, region_code, connection, client_key, revision)
  values ($1, '{VPS}', true, false, $2, $3, $4, (1 + random() * 1e9)::int)
  on conflict do nothing returning ${columnsOf(Engine)}`;
/** Changes the connection of an engine, which then waits for its first look. $1 name, $2 connection, $3 sealed key. */
export const UPDATE_ENGINE = statement(Engine.columns)`
  update engine set connection = $2, client_key = $3, revision = revision + 1, seen_at = null, updated_at = now()
  where name = $1 returning ${columnsOf(Engine)}`;
/** The engines of the operator. $1 a name, or null for all. */
export const FIND_ADDED_ENGINES = statement(Engine.columns)`
  select ${columnsOf(Engine)} from engine where connection is not null and ($1::text is null or name = $1) order by name`;
/** Another engine with one of the endpoints $3 and the project $2, under LOCK_ENGINES. $1 the name of this one. */
export const FIND_SAME_ENGINE = statement({ name: column.text() })`
  select name from engine
  where name <> $1 and connection->>'project' = $2 and connection->'endpoints' ?| $3::text[] order by name limit 1`;
const serversSql = (engine: string) => `
  select order_number as used from server
  where coalesce(engine, '') = ${engine} and status <> 'DELETED' and (status <> 'FAILED' or ipv4 is not null)`;
/** One server whose machines an engine may have. $1 engine. */
export const FIND_SERVER_OF_ENGINE = statement({ used: column.text() })`${serversSql('$1')} limit 1`;
/** The added engines without servers that get no orders: drained ones, and those that wait for a look. */
export const FIND_IDLE_ENGINES = statement({ name: column.text() })`
  select name from engine
  where connection is not null and (state = 'DRAINED' or seen_at is null) and not exists (${serversSql('engine.name')})`;
/** One host or server that keeps an engine from being removed. $1 engine. */
export const FIND_USE_OF_ENGINE = statement({ used: column.text() })`
  select name as used from host where driver = $1 union all ${serversSql('$1')} limit 1`;

const BEFORE_LOOK = `
  select name, seen_at is null as is_unseen, trouble is null as is_well, images as told from engine
  where name = $1 and ($2::int is null or revision = $2) for update`;
/** Whether a look changed what the operator sees: the first answer, an error or its end, or other images. */
const IS_NEWS = `(before.is_unseen and engine.seen_at is not null or before.is_well is distinct from (engine.trouble is null)
    or before.told is distinct from engine.images) as is_news`;
/**
 * Notes what an engine told. A changed connection stays unseen while the circuit breaker is open: it may lead to
 * another engine. The engine may not tell of itself, and its old answers then stay. Images that the worker is to
 * withdraw do not count. $1 name, $2 revision, $3 product, $4 version, $5 members as JSON, $6 images, $7 the error
 * about these answers. @returns whether the operator sees a change
 */
export const NOTE_ENGINE = statement({ isNews: column.boolean() })`
  with before as (${BEFORE_LOOK})
  update engine set product = coalesce($3, engine.product), version = coalesce($4, engine.version), members = $5,
    images = case when $6::text[] is null then engine.images else array(
      select told from unnest($6::text[]) told
      where not exists (select from engine_image where engine = $1 and alias = told and state = 'WITHDRAWING')) end,
    trouble = $7, trouble_at = case when $7::text is not null then now() end,
    seen_at = case when engine.seen_at is not null or not exists (select from brake where driver = engine.name) then now() end
  from before where engine.name = before.name
  returning ${IS_NEWS}`;
/** Notes the error of a look that failed. $1 name, $2 revision, $3 the error. @returns as NOTE_ENGINE */
export const NOTE_ENGINE_TROUBLE = statement({ isNews: column.boolean() })`
  with before as (${BEFORE_LOOK})
  update engine set trouble = $3, trouble_at = now() from before where engine.name = before.name
  returning ${IS_NEWS}`;

/** The engine of a host, in a query that calls it `host`: null if the environment configures it. */
export const ENGINE_OF_HOST_SQL = `(
  select engine.name from engine where engine.name = host.driver and engine.connection is not null)`;
/** Whether a host belongs to an engine of its kind, in a query that calls it `host`. Before the first worker, all do. */
export const OWN_HOST_SQL = `(
  exists (select from engine where engine.name = host.driver and host.kind = any(engine.kinds))
  or not exists (select from engine where host.kind = any(engine.kinds)))`;
/** Whether an engine has an image for machines of the tier `tier`, as far as it told. @param image its code, as an expression */
export const hasImageSql = (image: string): string => `(
  engine.images is null
  or ${image} || case tier.details->>'virtualization' when 'kvm' then '${VM_SUFFIX}' else '' end = any(engine.images))`;
/** Whether an active engine has an image for containers or virtual machines. Before the first worker, all do. */
export const isOnEngineSql = (image: string): string => `coalesce((
  select bool_or(engine.images is null or engine.images && array[${image}, ${image} || '${VM_SUFFIX}'])
  from engine where engine.state = 'ACTIVE'), true)`;
/** Whether the operator has restored the database, and has not yet looked at the engine `engine`. */
const ARE_ORDERS_STOPPED = 'exists (select from brake where brake.driver = engine.name and brake.stops_orders)';
/**
 * Whether orders can go to the engine of a host, in a query that calls it `host`.
 * @param image the code of the image that it needs to have; absent: any
 */
export const openEngineSql = (image?: string): string => `not exists (
  select from engine where engine.name = host.driver
    and (engine.state <> 'ACTIVE' or (engine.connection is not null and engine.seen_at is null) or ${ARE_ORDERS_STOPPED}
      ${image ? `or not ${hasImageSql(image)}` : ''}))`;

/** The kind of servers of a tier, which the query calls by that name. */
export const kindOfTierSql = (tier: string): string => `case ${tier}.kind when 'vps' then 'VPS' else 'DEDICATED' end`;

/** The name of the engine of kinds of servers that the environment does not make. */
export const NO_ENGINE = 'none';
/** Whether an engine makes machines of the tier `tier`. Before the first worker, one does. */
export const IS_MADE_SQL = `coalesce((
  select bool_or(engine.name <> '${NO_ENGINE}') from engine where ${kindOfTierSql('tier')} = any(engine.kinds)), true)`;

/** Whether machines of a kind, given as an expression, are simulated. Before the first worker, all are. */
export const isSimulatedSql = (kind: string): string =>
  `coalesce((select bool_and(engine.simulated) from engine where ${kind} = any(engine.kinds)), true)`;

/** An active engine with hosts in the region $1 that waits for a look, since its connection has changed. */
export const FIND_CHANGED_ENGINE = statement({ name: column.text() })`
  select name from engine
  where state = 'ACTIVE' and connection is not null and seen_at is null and product is not null
    and exists (select from host where host.driver = engine.name and host.region_code = $1) order by name limit 1`;

/** Whether VPS are simulated. */
export const IS_VPS_SIMULATED = statement({
  simulated: column.boolean(),
})`select ${isSimulatedSql(`'VPS'`)} as simulated`;

/** Whether a machine is real. */
export const HAS_REAL_ENGINE = statement({ isReal: column.boolean() })`
  select exists (select from engine where not simulated and name <> '${NO_ENGINE}') as is_real`;

/** Counts the servers of the kind $1 whose machines are simulated, and not gone. */
export const COUNT_SIMULATED_SERVERS = statement({ servers: column.int() })`
  select count(*)::int as servers from server, engine
  where $1 = any(engine.kinds) and engine.simulated and server.kind = $1 and server.status <> 'DELETED'
    and (server.status <> 'FAILED' or server.ipv4 is not null)`;

/** Counts the servers of the kind $1 whose machines an engine of the environment has. */
export const COUNT_SERVERS_OF_ENVIRONMENT = statement({ orphans: column.int() })`
  select count(*)::int as orphans from server
  where kind = $1 and engine is null and status <> 'DELETED' and (status <> 'FAILED' or ipv4 is not null)`;

/**
 * Whether machines of the tier `tier` are on the operator's hosts alone: no active engine picks a host by itself.
 * @param image the code of the image that such an engine needs to have; absent: any
 */
export const needsHostsSql = (image?: string): string => `coalesce((
  select bool_and(engine.needs_hosts or engine.state <> 'ACTIVE' or ${ARE_ORDERS_STOPPED} ${image ? `or not ${hasImageSql(image)}` : ''}) from engine
  where ${kindOfTierSql('tier')} = any(engine.kinds)), false)`;
