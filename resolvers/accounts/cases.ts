/** Cases of abuse, which the operator opens, answers by a measure, and closes. The customer hears of each step. */
import {
  AbuseCase,
  CASE_LIFECYCLE,
  type CaseState,
  COUNT_OPEN_CASES,
  FIND_LIMITED,
  LIMIT_NETWORK,
  LIMITED_MBPS,
  LIST_CASES,
  OPEN_CASE,
} from '../../entities/accounts/abuse-case.ts';
import { find } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { expression, transition } from '../../entities/history/transition.ts';
import { isId, newId } from '../../entities/ids.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { LIST_ADDRESS_USES } from '../../entities/servers/ip-address.ts';
import { Server } from '../../entities/servers/server.ts';
import { writeMessages } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { lockServer } from '../servers/find.ts';
import { changeServer, keepOff } from '../servers/update.ts';
import { changeSuspension, lockedAccount } from './account.ts';

export { CASE_STATES } from '../../entities/accounts/abuse-case.ts';

/** The acts against abuse, the mildest first. The last one suspends the account with all servers. */
export const MEASURES = ['LIMIT_NETWORK', 'POWER_OFF', 'SUSPEND'] as const;
export type Measure = (typeof MEASURES)[number];
const TAKE: Record<Measure, (tx: Transaction, context: Context, one: AbuseCase, reason: string) => Promise<boolean>> = {
  LIMIT_NETWORK: limitNetwork,
  POWER_OFF: powerOff,
  SUSPEND: suspend,
};
/** Each measure in a message to the customer. */
const ACTS: Record<Measure, (orderNumber: string) => string> = {
  LIMIT_NETWORK: (number) => `limit the network of ${number} to ${LIMITED_MBPS} Mbit/s until we close the case`,
  POWER_OFF: (number) => `turn ${number} off`,
  SUSPEND: () => 'suspended your account, and turn its servers off',
};

/** The most characters of a message. */
const BODY_MAX = 4_000;

export interface NewCase {
  source: string;
  address: string;
  at: Date;
  text: string;
  deadline: Date;
}

/** Open cases first, by their deadline, and then the latest closed ones. */
export const listCases = (
  { db }: Context,
  { state, accountId }: { state?: CaseState | null | undefined; accountId?: string | null | undefined },
  limit: number,
): Promise<AbuseCase[]> => LIST_CASES.all(db, [state, accountId, limit]);

/** The number of open cases of each account, in their order. */
export async function countOpenCases({ db }: Context, accountIds: readonly string[]): Promise<number[]> {
  const counted = await COUNT_OPEN_CASES.all(db, [accountIds]);
  const cases = new Map(counted.map((row) => [row.accountId, row.cases]));
  return accountIds.map((id) => cases.get(id) ?? 0);
}

/**
 * Opens a case against the customer whose server had the address at the time. The customer gets the complaint as a message.
 * A second complaint of the same source about the same address and time returns the first case.
 * @throws ApiError not_found if no server had the address, or validation_failed for a wrong time or a text without room
 */
export async function openCase(context: Context, given: NewCase): Promise<AbuseCase> {
  const { source, address, at, text, deadline } = given;
  if (at.getTime() > Date.now()) throw invalid('at', 'The time of the complaint is to come. Check its time zone.');
  if (deadline.getTime() <= Date.now()) throw invalid('deadline', 'The deadline is over. Give a later one.');
  return context.db.transaction(async (tx) => {
    const [use] = await LIST_ADDRESS_USES.all(tx, [address, at, 1]);
    if (!use) throw new ApiError('not_found', `No server had ${address} at ${at.toISOString()}. See addressUses.`);
    const { accountId, orderNumber } = use;
    await lockAccount(tx, accountId);
    const row = [newId('case'), accountId, orderNumber, source, address, at, text, deadline];
    const opened = await OPEN_CASE.first(tx, row);
    if (!opened) return (await find(tx, AbuseCase, { source, address, occurredAt: at }))!;
    const data = { orderNumber, address, at: at.toISOString(), deadline: deadline.toISOString() };
    await record(tx, accountId, opened.id, { type: 'case.opened', actor: actorOf(context), data });
    const head = `A complaint is about ${address} of ${orderNumber} at ${data.at}. Solve it, and answer us, before ${data.deadline}.`;
    const room = BODY_MAX - [...head].length - 2;
    if ([...text].length > room)
      throw invalid('text', `The message has room for ${room} characters of the text. Shorten it.`);
    await tell(tx, context, opened, `${head}\n\n${text}`);
    return opened;
  });
}

/**
 * Takes a measure in an open case, and tells the customer the reason. A measure that is in force changes nothing.
 * @throws ApiError not_found, validation_failed for a closed case, or server_busy
 */
export async function takeMeasure(context: Context, id: string, measure: Measure, reason: string): Promise<AbuseCase> {
  return context.db.transaction(async (tx) => {
    const one = await lockedCase(tx, id);
    if (one.state === 'CLOSED') throw invalid('id', 'The case is closed. Open another one for a new complaint.');
    if (!(await TAKE[measure](tx, context, one, reason))) return one;
    const data = { measure: measure.toLowerCase(), reason };
    await record(tx, one.accountId, id, { type: 'case.measure_taken', actor: actorOf(context), data });
    await tell(tx, context, one, `We ${ACTS[measure](one.orderNumber)}. Our reason: ${reason}`);
    return found(await find(tx, AbuseCase, { id }));
  });
}

/** Workers set the speed. @returns whether this case did not limit it yet */
async function limitNetwork(tx: Transaction, _: Context, { id, orderNumber }: AbuseCase): Promise<boolean> {
  const { kind } = await presentServer(tx, orderNumber);
  if (kind === 'DEDICATED')
    throw invalid(
      'measure',
      'Nothing limits the network of a dedicated server. Limit it in your switch, or turn it off.',
    );
  return (await LIMIT_NETWORK.first(tx, [id])) !== undefined;
}

/** @throws ApiError not_found if the server is gone */
async function presentServer(tx: Transaction, orderNumber: string): Promise<Server> {
  const present = await find(tx, Server, { orderNumber });
  if (!present || present.status === 'DELETING' || present.status === 'DELETED')
    throw new ApiError('not_found', `The server ${orderNumber} is gone. Suspend the account, or close the case.`);
  return present;
}

/** @returns whether the server was on, or would come on after its change or a suspension */
async function powerOff(tx: Transaction, context: Context, { orderNumber }: AbuseCase): Promise<boolean> {
  await presentServer(tx, orderNumber);
  const server = await lockServer(tx, context, orderNumber);
  const { status } = server;
  // Its machine may have come on by itself.
  if (status === 'STOPPED') await context.provisioning.servers.reconcile(tx, server);
  // Customers can keep a server busy for ever.
  if (server.change || status === 'STOPPED' || status === 'SUSPENDED') return keepOff(tx, context, server);
  await changeServer(tx, context, orderNumber, { powerState: 'OFF' });
  return true;
}

/** @returns whether the account or its servers were free */
async function suspend(tx: Transaction, context: Context, { accountId }: AbuseCase, reason: string): Promise<boolean> {
  if ((await lockedAccount(tx, accountId)).serversOff) return false;
  await changeSuspension(tx, context, accountId, { reason, serversOff: true });
  return true;
}

/** Closes a case, and tells the customer the result. The first result of a closed case stays. @throws ApiError not_found */
export async function closeCase(context: Context, id: string, result: string): Promise<AbuseCase> {
  return context.db.transaction(async (tx) => {
    const one = await lockedCase(tx, id);
    const closed = await transition(tx, CASE_LIFECYCLE, id, 'CLOSED', {
      set: { result, closedAt: expression('now()') },
    });
    if (!closed) return one;
    await record(tx, one.accountId, id, { type: 'case.closed', actor: actorOf(context), data: { result } });
    const freed = one.limitedAt && !(await FIND_LIMITED.first(tx, [one.orderNumber]))?.isLimited;
    const freedom = freed ? ` The network of ${one.orderNumber} has no limit by us any more.` : '';
    await tell(tx, context, one, `We closed the case.${freedom} Our result: ${result}`);
    return closed;
  });
}

/** Locks the account of a case, and reads the case. @throws ApiError not_found */
async function lockedCase(tx: Transaction, id: string): Promise<AbuseCase> {
  const { accountId } = found(isId('case', id) && (await find(tx, AbuseCase, { id })));
  await lockAccount(tx, accountId);
  return found(await find(tx, AbuseCase, { id }));
}

async function tell(tx: Transaction, context: Context, { id, accountId, address }: AbuseCase, body: string) {
  const letter = { title: `Complaint about ${address}`, body, relatedType: 'CASE', relatedId: id } as const;
  await writeMessages(tx, 'OPERATOR', [accountId], letter, actorOf(context));
}
