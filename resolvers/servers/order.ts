/**
 * Orders a server in one transaction: it checks, claims a place with all that belongs to it, and by one statement holds the
 * money and writes order, task and records.
 */
import { addressRoomSql } from '../../entities/address.ts';
import { stockLevel } from '../../entities/catalog.ts';
import type { Queryable, Transaction } from '../../entities/database.ts';
import { columnsOf } from '../../entities/entity.ts';
import { ApiError } from '../../entities/errors.ts';
import { freeSql } from '../../entities/host.ts';
import { newId, newOrderNumber, shortName } from '../../entities/ids.ts';
import { holdSql } from '../../entities/ledger.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { deliveriesFor, WEBHOOK_IDS_SQL } from '../../entities/outbox.ts';
import { actingKeySql, recordParameters, recordSql } from '../../entities/record.ts';
import { newMachinePassword } from '../../entities/secrets.ts';
import { Server } from '../../entities/server.ts';
import {
  claimSql,
  passwordContext,
  START_TASK_PARAMETERS,
  serverTask,
  startTaskParameters,
  startTaskSql,
  taskChange,
  waitForRoom,
} from '../../provisioning/index.ts';
import { requireSpendable } from '../auth/spend-limit.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { lockAccount } from '../limits.ts';
import { demandPayment, type PaymentHeaders, pay, type Sale, signedPayment, withChallenge } from '../x402.ts';

export interface ServerOrder {
  serviceCode: string;
  region?: string | null | undefined;
  os: string;
  hostname?: string | null | undefined;
  sshKeyIds?: string[] | null | undefined;
  rootPassword?: string | null | undefined;
  userData?: string | null | undefined;
  labels?: Record<string, string> | null | undefined;
  autoRenew: boolean;
  maxPriceUsd?: bigint | null | undefined;
}

export interface OrderedServer {
  server: Server;
  chargedMicros: bigint;
  paidBy: 'balance' | 'x402';
  /** Only if one was asked for or had to be made; shown once. */
  rootPassword: string | null;
}

/**
 * Ordered from the balance, or paid for by x402.
 * @throws ApiError for what cannot be ordered, insufficient_balance or payment_required with how to pay by x402; then
 * nothing is written
 */
export async function orderServer(
  context: Context,
  order: ServerOrder,
  payment: PaymentHeaders = {},
): Promise<OrderedServer> {
  const sale = saleOf(context, order);
  const signed = signedPayment(payment);
  if (signed !== undefined) return pay(context, signed, sale);
  if (payment.mode) return demandPayment(context, sale);
  return whereRoomIs((search) =>
    context.db.transaction(async (tx) => {
      await lockAccount(tx, accountOf(context));
      return place(tx, context, order, { orderNumber: newOrderNumber('SRV'), from: 'balance', ...search });
    }),
  );
}

/** The region that was chosen had no room after all: others were faster. */
class NoRoom extends Error {
  readonly region: string;
  constructor(region: string) {
    super(`There is no room in ${region}.`);
    this.region = region;
  }
}

/** How an order looks for room. */
interface Search {
  /** Regions that were tried in vain. */
  full: ReadonlySet<string>;
  /** Whether it waits for others that are claiming the last of something. */
  patient: boolean;
}

/**
 * Tries again where the chosen region has no room after all: first with patience, then without that region.
 * @param attempt undoes what it has written and locked when it fails
 */
async function whereRoomIs<T>(attempt: (search: Search) => Promise<T>): Promise<T> {
  const full = new Set<string>();
  for (let patient = false; ; patient = !patient) {
    try {
      return await attempt({ full, patient });
    } catch (error) {
      if (!(error instanceof NoRoom)) throw error;
      if (patient) full.add(error.region);
    }
  }
}

const OFFER = { path: '/v1/servers', description: 'A server: its first month and its setup fee.' };

const saleOf = (context: Context, order: ServerOrder): Sale<OrderedServer> => ({
  ...OFFER,
  kind: 'SRV',
  input: order,
  check: async () => {
    const { tier } = check(order, await readFacts(context.db, accountOf(context), order), context.limits.servers);
    const priceMicros = BigInt(tier.priceMonthMicros) + BigInt(tier.setupFeeMicros);
    await requireSpendable(context.db, context, priceMicros);
    return priceMicros;
  },
  fulfil: (tx, orderNumber, txId) => {
    const from = txId === undefined ? 'payment to come' : 'payment';
    return whereRoomIs((search) =>
      tx.attempt((inner) => place(inner, context, order, { orderNumber, from, ...search })),
    );
  },
});

interface Placing extends Search {
  orderNumber: string;
  from: 'balance' | 'payment' | 'payment to come';
}

/**
 * Checks and orders, under the lock of the account. An order whose payment is still to come holds nothing: no money, and no
 * place, which strangers could otherwise keep from others for free.
 * @throws NoRoom if others took the last place of the region after it was chosen
 */
async function place(
  tx: Transaction,
  context: Context,
  order: ServerOrder,
  { orderNumber, from, full, patient }: Placing,
): Promise<OrderedServer> {
  const accountId = accountOf(context);
  const facts = await readFacts(tx, accountId, full.size ? { ...order, region: null } : order);
  const regions = facts.regions.filter(({ code }) => !full.has(code));
  const { tier, region, keys } = check(order, { ...facts, regions }, context.limits.servers);
  const rootPassword = order.rootPassword ?? (keys.length ? null : newMachinePassword());
  const priceMicros = BigInt(tier.priceMonthMicros) + BigInt(tier.setupFeeMicros);
  await requireSpendable(tx, context, priceMicros);
  const paid = from !== 'payment to come';
  if (paid && facts.balanceMicros < priceMicros)
    throw withChallenge(context, OFFER, priceMicros, insufficientBalance(priceMicros, facts.balanceMicros));
  const kind = tier.kind === 'vps' ? 'VPS' : 'DEDICATED';
  const { serviceCode } = order;
  const mayHaveRoom = !patient || (await waitForRoom(tx, { orderNumber, generation: 1, region, serviceCode }));
  if (!mayHaveRoom) throw new NoRoom(region);
  const [ordered] = await tx.query<Server & { webhookIds: string[] }>(
    paid ? ORDER : ORDER_UNPAID,
    [
      accountId,
      priceMicros,
      newId('xfr'),
      orderNumber,
      serviceCode,
      newId('srv'),
      kind,
      order.hostname ?? `srv-${shortName()}`,
      region,
      order.os,
      keys.map(({ id }) => id),
      keys.map(({ publicKey }) => publicKey),
      order.userData ?? null,
      rootPassword && context.vault.seal(rootPassword, passwordContext(orderNumber)),
      JSON.stringify(order.labels ?? {}),
      order.autoRenew,
      tier.priceMonthMicros,
      tier.setupFeeMicros,
      ...(paid ? startTaskParameters(serverTask({ kind, orderNumber, accountId })) : []),
      ...recordParameters({
        type: 'server.created',
        resource: 'server',
        actor: actorOf(context),
        data: { status: 'PENDING' },
      }),
    ],
    paid ? 'order' : 'order unpaid',
  );
  if (!ordered) throw new NoRoom(region); // the balance suffices, and is locked
  const { webhookIds, ...server } = ordered;
  tx.changed({ kind: 'server', accountId, id: orderNumber }, { kind: 'balance', accountId, id: accountId });
  tx.changed(...deliveriesFor(webhookIds));
  if (paid) tx.changed(taskChange(serverTask(server).lane));
  return { server, chargedMicros: priceMicros, paidBy: from === 'balance' ? 'balance' : 'x402', rootPassword };
}

/** The head has the CTEs `paid` with the account, or with nothing if it cannot pay, and `room` with what was claimed. */
const orderSql = (head: string, starts: string, first: number): string => `
  with ${head},
    ordered as (
      insert into server (account_id, order_number, service_code, id, kind, status, hostname, region, os, ssh_key_ids, ssh_public_keys,
        user_data, root_password, labels, auto_renew, price_month_micros, setup_fee_micros, ipv4, ipv6, ipv6_prefix, host)
      select account_id, $4, $5, $6, $7, 'PENDING', $8, $9, $10, $11::text[], $12::text[],
        $13, $14::bytea, $15::jsonb, $16::boolean, $17::bigint, $18::bigint, ipv4, ipv6, ipv6_prefix, host
      from paid cross join room
      returning ${columnsOf(Server)}, account_id, order_number as subject),
    ${starts}
    ${recordSql('ordered', first)}
  select *, ${WEBHOOK_IDS_SQL} from ordered`;
const AFTER_TASK = 19 + START_TASK_PARAMETERS;
export const ORDER = orderSql(
  `${claimSql({ region: '$9', serviceCode: '$5', orderNumber: '$4', generation: '1' })},
  ${holdSql(actingKeySql(AFTER_TASK))}`,
  `${startTaskSql('ordered', 19)},`,
  AFTER_TASK,
);
const ORDER_UNPAID = orderSql(
  `paid as (select $1::text as account_id, $2::bigint, $3::text),
  room as (select null::inet as ipv4, null::inet as ipv6, null::text as ipv6_prefix, null::text as host)`,
  '',
  19,
);

export interface Facts {
  balanceMicros: bigint;
  servers: number;
  tier: { kind: 'vps' | 'dedicated'; priceMonthMicros: string; setupFeeMicros: string; minDiskGb: number } | null;
  regions: { code: string; free: number }[];
  bastions: string[];
  imageOffered: boolean;
  keys: { id: string; publicKey: string }[];
}

/**
 * Everything an order depends on, in one query. It counts what is free at all bastions only if the one that is asked for has
 * nothing, or none is asked for.
 */
export async function readFacts(
  tx: Queryable,
  accountId: string,
  { serviceCode, os, sshKeyIds, region = null }: ServerOrder,
): Promise<Facts> {
  const read = async (code: string | null) =>
    (await tx.query<Facts>(FACTS, [accountId, serviceCode, os, sshKeyIds ?? null, code], 'order facts'))[0]!;
  const facts = await read(region);
  return region === null || facts.regions.some(hasRoom) ? facts : read(null);
}
const hasRoom = (stock: Facts['regions'][number]): boolean => stockLevel(stock) !== 'NONE';

export const FACTS = `
  with ${addressRoomSql(undefined, '($5::text is null or bastion.code = $5)')}
  select
    coalesce((select available_micros from balance where account_id = $1), 0) as "balanceMicros",
    (select count(*)::int from server where account_id = $1 and status <> 'DELETED') as servers,
    (select json_build_object('kind', kind, 'priceMonthMicros', price_month_micros::text, 'setupFeeMicros', setup_fee_micros::text)
      from catalog_item where code = $2 and kind in ('vps', 'dedicated') and offered) as tier,
    (select coalesce(json_agg(json_build_object('code', bastion.code, 'free', least(${freeSql()}, room.free)) order by bastion.position), '[]')
      from stock join catalog_item tier on tier.code = stock.service_code
        join catalog_item bastion on bastion.code = stock.region_code and bastion.offered
        left join room on room.region_code = stock.region_code
      where stock.service_code = $2 and ($5::text is null or stock.region_code = $5)) as regions,
    (select coalesce(array_agg(code), '{}') from catalog_item where kind = 'bastion' and offered) as bastions,
    exists (select from catalog_item where code = $3 and kind = 'image' and offered) as "imageOffered",
    (select coalesce(json_agg(json_build_object('id', id, 'publicKey', public_key) order by id), '[]')
      from ssh_key where account_id = $1 and ($4::text[] is null or id = any($4))) as keys`;

/** What the order comes to, or why it cannot be taken. */
export function check(order: ServerOrder, facts: Facts, serversMax: number, evenSo?: 'also without stock') {
  const { tier, keys } = facts;
  if (!tier) throw new ApiError('unknown_service_code');
  if (!facts.imageOffered) throw new ApiError('unknown_os');
  const known = new Set(keys.map(({ id }) => id));
  if (order.sshKeyIds?.some((id) => !known.has(id))) throw new ApiError('unknown_ssh_key');
  const region = chooseRegion(order, facts, evenSo);
  const price = BigInt(tier.priceMonthMicros) + BigInt(tier.setupFeeMicros);
  if (order.maxPriceUsd != null && price > order.maxPriceUsd) {
    throw new ApiError('price_exceeds_max', `The price is ${usdFromMicros(price)} USD.`, { requiredMicros: price });
  }
  if (facts.servers >= serversMax)
    throw new ApiError('server_limit_reached', `The account has ${facts.servers} servers, and may have ${serversMax}.`);
  return { tier, region, keys };
}

/** The region asked for, or the first with stock. */
function chooseRegion({ region }: ServerOrder, { regions, bastions }: Facts, evenSo?: 'also without stock'): string {
  if (region && !bastions.includes(region)) throw new ApiError('unknown_region');
  const availableRegions = regions.filter(hasRoom).map(({ code }) => code);
  const chosen = availableRegions.find((code) => !region || code === region);
  if (!chosen && evenSo && (region || regions[0])) return region ?? regions[0]!.code;
  if (!chosen) throw new ApiError('out_of_stock', undefined, { availableRegions });
  return chosen;
}

export function insufficientBalance(requiredMicros: bigint, balanceMicros: bigint): ApiError {
  const sentence = `The price is ${usdFromMicros(requiredMicros)} USD, and the balance ${usdFromMicros(balanceMicros)} USD.`;
  return new ApiError('insufficient_balance', sentence, { requiredMicros, balanceMicros });
}
