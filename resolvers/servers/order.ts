/**
 * Orders a server. It reads what the order depends on, and then takes the lock of the account. One statement under that lock
 * claims a place with all that belongs to it, holds the money, and writes order, task and records.
 */

import { columnsOf } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { actingKeySql, recordParameters, recordSql } from '../../entities/history/record.ts';
import { newId, newOrderNumber, randomText } from '../../entities/ids.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { holdSql, lockAvailable } from '../../entities/payments/ledger.ts';
import { newMachinePassword } from '../../entities/secrets.ts';
import { claimSql } from '../../entities/servers/capacity.ts';
import { Server } from '../../entities/servers/server.ts';
import { START_TASK_PARAMETERS, startTaskParameters, startTaskSql, taskChange } from '../../entities/tasks/start.ts';
import { deliveriesFor, WEBHOOK_IDS_SQL } from '../../entities/webhooks/outbox.ts';
import { passwordContext, serverTask, waitForRoom } from '../../provisioning/index.ts';
import { requireSpendable } from '../accounts/auth/spend-limit.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { demandPayment, type PaymentHeaders, pay, type Sale, signedPayment, withChallenge } from '../payments/x402.ts';
import { check, type Facts, readFacts, SERVERS_SQL, type ServerOrder } from './order-facts.ts';

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
  const accountId = accountOf(context);
  return whereRoomIs(async (search) => {
    // Read before the lock: other orders of the account need not wait for it. The statement of the order counts by itself.
    const facts = await readFacts(context.db, accountId, within(order, search), !search.patient);
    return context.db.transaction(async (tx) => {
      const balanceMicros = await lockAvailable(tx, accountId);
      const sold = { facts: { ...facts, balanceMicros }, orderNumber: newOrderNumber('SRV'), from: 'balance' } as const;
      return place(tx, context, order, { ...sold, ...search });
    });
  });
}

/** The region that was chosen has no room, or the account has too many servers: it is counted, and tried once more. */
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
      tx.attempt(async (inner) => {
        const facts = await readFacts(inner, accountOf(context), within(order, search));
        return place(inner, context, order, { facts, orderNumber, from, ...search });
      }),
    );
  },
});

/** After a region was full, all are looked at. */
const within = (order: ServerOrder, { full }: Search): ServerOrder => (full.size ? { ...order, region: null } : order);

interface Placing extends Search {
  /** What the order depends on; its balance was read under the lock. */
  facts: Facts;
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
  { facts, orderNumber, from, full, patient }: Placing,
): Promise<OrderedServer> {
  const accountId = accountOf(context);
  const regions = facts.regions.filter(({ code }) => !full.has(code));
  const { tier, region, keys } = check(order, { ...facts, regions }, context.limits.servers);
  const rootPassword = order.rootPassword ?? (keys.length ? null : newMachinePassword());
  const priceMicros = BigInt(tier.priceMonthMicros) + BigInt(tier.setupFeeMicros);
  await requireSpendable(tx, context, priceMicros);
  const paid = from !== 'payment to come';
  const isPoor = paid && facts.balanceMicros < priceMicros;
  // What refuses the order otherwise is told first.
  if (isPoor && !facts.isCounted) throw new NoRoom(region);
  if (isPoor) throw withChallenge(context, OFFER, priceMicros, insufficientBalance(priceMicros, facts.balanceMicros));
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
      order.hostname ?? `srv-${randomText(6)}`,
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
      ...(paid ? [context.limits.servers] : []),
      ...(paid ? startTaskParameters(serverTask({ kind, orderNumber, accountId })) : []),
      ...recordParameters({ type: 'server.created', actor: actorOf(context), data: { status: 'PENDING' } }),
    ],
    paid ? 'order' : 'order unpaid',
  );
  // The balance suffices, and is locked.
  if (!ordered) throw new NoRoom(region);
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
      returning ${columnsOf(Server)}, order_number as subject),
    ${starts}
    ${recordSql('ordered', first)}
  select *, ${WEBHOOK_IDS_SQL} from ordered`;
/** $19: how many servers the account may have. */
const [TASK, AFTER_TASK] = [20, 20 + START_TASK_PARAMETERS];
export const ORDER = orderSql(
  `${claimSql({ region: '$9', serviceCode: '$5', orderNumber: '$4', generation: '1' })},
  ${holdSql(actingKeySql(AFTER_TASK), `(${SERVERS_SQL}) < $19::int`)}`,
  `${startTaskSql('ordered', TASK)},`,
  AFTER_TASK,
);
const ORDER_UNPAID = orderSql(
  `paid as (select $1::text as account_id, $2::bigint, $3::text),
  room as (select null::inet as ipv4, null::inet as ipv6, null::text as ipv6_prefix, null::text as host)`,
  '',
  19,
);

export function insufficientBalance(requiredMicros: bigint, balanceMicros: bigint): ApiError {
  const sentence = `The price is ${usdFromMicros(requiredMicros)} USD, and the balance ${usdFromMicros(balanceMicros)} USD.`;
  return new ApiError('insufficient_balance', sentence, { requiredMicros, balanceMicros });
}
