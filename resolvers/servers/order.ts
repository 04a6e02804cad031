/**
 * Orders a server. The resolver reads the facts of the order, and then locks the account. One statement under that lock
 * claims capacity, holds the money, and writes the order, its task and its records.
 */
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { recordParameters } from '../../entities/history/record.ts';
import { newId, newOrderNumber, randomText } from '../../entities/ids.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { lockAvailable } from '../../entities/payments/ledger.ts';
import { newMachinePassword } from '../../entities/secrets.ts';
import { ORDER_SERVER, ORDER_UNPAID_SERVER } from '../../entities/servers/order.ts';
import { ROOT_PASSWORD, type Server, USER_DATA } from '../../entities/servers/server.ts';
import { startTaskParameters, taskChange } from '../../entities/tasks/start.ts';
import { deliveriesFor } from '../../entities/webhooks/outbox.ts';
import { serverTask, waitForRoom } from '../../provisioning/index.ts';
import { requireOpen, requireUnsuspended } from '../accounts/account.ts';
import { renewalOf, requireSpendable, spenderOf } from '../accounts/auth/spend-limit.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { type PaymentHeaders, type Sale, signedPayment } from '../payments/sale.ts';
import { demandPayment, pay, withChallenge } from '../payments/x402.ts';
import { check, type Facts, priceOf, readFacts, type ServerOrder } from './order-facts.ts';

/** An order for which it is decided whether the server renews itself. */
type DecidedOrder = ServerOrder & { autoRenew: boolean };

export interface OrderedServer {
  server: Server;
  chargedMicros: bigint;
  paidBy: 'balance' | 'x402';
  /** The password of the order, or a generated one where the order has no SSH key. This answer alone shows it. */
  rootPassword: string | null;
}

/**
 * Orders a server from the balance, or for a payment by x402.
 * @throws ApiError the reason of a refusal; insufficient_balance and payment_required say how to pay by x402. Then the order
 * wrote nothing.
 */
export async function orderServer(
  context: Context,
  asked: ServerOrder,
  payment: PaymentHeaders = {},
): Promise<OrderedServer> {
  const order = { ...asked, autoRenew: renewalOf(context, asked.autoRenew) };
  const sale = saleOf(context, order);
  const signed = signedPayment(payment);
  if (signed !== undefined) return pay(context, signed, sale);
  if (payment.mode) return demandPayment(context, sale);
  const accountId = accountOf(context);
  return whereRoomIs(async (search) => {
    // The lock comes after the facts, so that other orders of the account wait less. The statement checks them again.
    const facts = await readFacts(context.db, accountId, within(order, search), !search.patient);
    return context.db.transaction(async (tx) => {
      const balanceMicros = await lockAvailable(tx, accountId);
      const orderNumber = newOrderNumber('SRV');
      return place(tx, context, order, { facts: { ...facts, balanceMicros }, orderNumber, from: 'balance', ...search });
    });
  });
}

/** The chosen region has no room, or the account has too many servers. The next attempt counts both. */
class NoRoom extends Error {
  readonly region: string;
  constructor(region: string) {
    super(`There is no room in ${region}.`);
    this.region = region;
  }
}

/** How an order looks for room. */
interface Search {
  /** Regions that earlier attempts found full. */
  full: ReadonlySet<string>;
  /** Whether the order waits for other claims of the last of something. */
  patient: boolean;
}

/**
 * Tries again where the chosen region has no room: first with patience, then without that region.
 * @param attempt undoes its writes and its locks when it fails
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

function saleOf(context: Context, order: DecidedOrder): Sale<OrderedServer> {
  const accountId = accountOf(context);
  /** The region where the check has found room. */
  let checked: string | undefined;
  return {
    ...OFFER,
    kind: 'SRV',
    input: order,
    check: async () => {
      const facts = await readFacts(context.db, accountId, order);
      const { tier, region } = await check(context.db, context, order, facts);
      const priceMicros = priceOf(tier);
      await requireSpendable(context.db, context, priceMicros);
      // The payment would pay the debt, and not the order.
      if (facts.owedMicros > 0n) throw insufficientBalance(priceMicros, facts);
      checked = region;
      return priceMicros;
    },
    attempts: (attempt) =>
      whereRoomIs((search) =>
        attempt(async (tx, orderNumber, { txId, signedMicros }) => {
          // The statement of a paid order checks that region again, so nothing has to be counted first.
          const hoped = txId === undefined || search.patient || search.full.size ? undefined : checked;
          const given = hoped ? { ...order, region: hoped } : within(order, search);
          const facts = await readFacts(tx, accountId, given, hoped !== undefined);
          if (hoped && !facts.bastions.includes(hoped)) throw new NoRoom(hoped);
          const from = txId === undefined ? 'payment to come' : 'payment';
          return place(tx, context, order, { facts, orderNumber, from, signedMicros, ...search });
        }),
      ),
  };
}

/** After a region was full, the facts have to cover all regions. */
const within = (order: ServerOrder, { full }: Search): ServerOrder => (full.size ? { ...order, region: null } : order);

interface Placing extends Search {
  /** The facts of the order. Its balance was read under the lock. */
  facts: Facts;
  orderNumber: string;
  from: 'balance' | 'payment' | 'payment to come';
  /** The micro-USD that the payer of an order by x402 agreed to. */
  signedMicros?: bigint;
}

/**
 * Checks and orders, under the lock of the account. An order whose payment is still to come holds no money and no capacity.
 * Otherwise a stranger could keep capacity from customers for free.
 * @throws NoRoom if other orders took the last place of the region after the order chose it
 */
async function place(
  tx: Transaction,
  context: Context,
  order: DecidedOrder,
  { facts, orderNumber, from, signedMicros, full, patient }: Placing,
): Promise<OrderedServer> {
  const accountId = accountOf(context);
  const regions = facts.regions.filter(({ code }) => !full.has(code));
  const { tier, region, keys } = await check(tx, context, order, { ...facts, regions });
  const rootPassword = order.rootPassword ?? (keys.length ? null : newMachinePassword());
  const priceMicros = priceOf(tier);
  if (signedMicros !== undefined && priceMicros > signedMicros) throw risen(priceMicros, signedMicros);
  await requireSpendable(tx, context, priceMicros);
  const paid = from !== 'payment to come';
  const isPoor = paid && facts.balanceMicros < priceMicros;
  // A reason other than the balance takes precedence, so it has to be counted first.
  if (isPoor && !facts.isCounted) throw new NoRoom(region);
  if (isPoor) throw insufficientFor(context, priceMicros, facts);
  const kind = tier.kind === 'vps' ? 'VPS' : 'DEDICATED';
  const { serviceCode } = order;
  const { credentialId, limitedBy } = spenderOf(context);
  const mayHaveRoom = !patient || (await waitForRoom(tx, { orderNumber, generation: 1, region, serviceCode }));
  if (!mayHaveRoom) throw new NoRoom(region);
  const ordered = await (paid ? ORDER_SERVER : ORDER_UNPAID_SERVER).first(tx, [
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
    order.userData == null ? null : USER_DATA.seal(context.vault, order.userData, orderNumber),
    rootPassword && ROOT_PASSWORD.seal(context.vault, rootPassword, orderNumber),
    JSON.stringify(order.labels ?? {}),
    order.autoRenew,
    tier.priceMonthMicros,
    tier.setupFeeMicros,
    ...(paid
      ? [
          ...[context.limits.servers, credentialId, limitedBy],
          // Money that has come already pays for its order, even if the credential has ended.
          from === 'balance' ? context.viewer!.credentialId : null,
          ...startTaskParameters(serverTask({ kind, orderNumber, accountId, host: null })),
        ]
      : []),
    ...recordParameters({ type: 'server.created', actor: actorOf(context), data: { status: 'PENDING' } }),
  ]);
  // The balance suffices, and is locked. So the account is suspended, a credential or key has ended, or capacity or the limit of servers is missing.
  if (!ordered) {
    await (from === 'balance' ? requireOpen(tx, context) : requireUnsuspended(tx, context));
    throw new NoRoom(region);
  }
  const { webhookIds, ...server } = ordered;
  tx.changed({ kind: 'server', accountId, id: orderNumber }, { kind: 'balance', accountId, id: accountId });
  tx.changedAll(deliveriesFor(webhookIds));
  if (paid) tx.changed(taskChange(serverTask(server).lane));
  return { server, chargedMicros: priceMicros, paidBy: from === 'balance' ? 'balance' : 'x402', rootPassword };
}

/** The operator raised the price after the payer had signed. The balance must not pay the rest unasked. */
function risen(priceMicros: bigint, signedMicros: bigint): ApiError {
  const [price, signed] = [priceMicros, signedMicros].map(usdFromMicros);
  const sentence = `The price is ${price} USD now, and the payment was signed for ${signed} USD.`;
  return new ApiError('price_exceeds_max', sentence, { requiredMicros: priceMicros });
}

/** Offers to pay by x402, unless such a payment would pay the debt of the account. */
function insufficientFor(context: Context, priceMicros: bigint, facts: Facts): ApiError {
  const refusal = insufficientBalance(priceMicros, facts);
  return facts.owedMicros > 0n ? refusal : withChallenge(context, OFFER, priceMicros, refusal);
}

export function insufficientBalance(
  requiredMicros: bigint,
  { balanceMicros, owedMicros }: Pick<Facts, 'balanceMicros' | 'owedMicros'>,
): ApiError {
  const [price, balance, debt] = [requiredMicros, balanceMicros, owedMicros].map(usdFromMicros);
  const sentence = owedMicros
    ? `The account owes ${debt} USD, because a chain removed a payment. Top up more than the debt first by {CreateTopup}.`
    : `The price is ${price} USD, and the balance ${balance} USD. Top up by {CreateTopup}.`;
  return new ApiError('insufficient_balance', sentence, { requiredMicros, balanceMicros });
}
