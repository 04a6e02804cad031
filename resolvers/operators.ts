/** The named operators. Each has a token of its own, which the service shows once and which expires. */
import { disableCreated } from '../entities/accounts/revoke.ts';
import { find } from '../entities/database/table.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { expression, transition } from '../entities/history/transition.ts';
import { newId } from '../entities/ids.ts';
import {
  ADD_OPERATOR,
  LIST_OPERATORS,
  OPERATOR_LIFECYCLE,
  Operator,
  type OperatorRole,
  RENEW_TOKEN,
  SET_ROLE,
} from '../entities/operator.ts';
import { lockOperator } from '../entities/payments/ledger.ts';
import { digest, mintCredential } from '../entities/secrets.ts';
import { requireOpen } from './accounts/account.ts';
import { mayCall } from './accounts/auth/scope.ts';
import { actorOf, type Context } from './context.ts';
import { found, invalid } from './errors.ts';
import { recordByOperator } from './record.ts';

export { OPERATOR_ROLES, OPERATOR_STATES } from '../entities/operator.ts';

export interface NewOperator {
  /** Unique among the active operators. */
  name: string;
  role: OperatorRole;
  /** The days until the token expires. */
  days: number;
}

export interface OperatorWithToken {
  operator: Operator;
  /** The token itself; the service cannot show it again. */
  token: string;
}

/** The name of the owner by the token in DATA_DIR. */
const FIRST_OWNER = 'operator';

export const listOperators = ({ db }: Context, state: Operator['state'] | null): Promise<Operator[]> =>
  LIST_OPERATORS.all(db, [state]);

/** @throws ApiError validation_failed if another active operator has the name */
export async function addOperator(context: Context, { name, role, days }: NewOperator): Promise<OperatorWithToken> {
  const token = mintCredential('op');
  const operator = await context.db.transaction(async (tx) => {
    await lockOwnOperator(tx, context);
    const isFree = name.toLowerCase() !== FIRST_OWNER;
    const added = isFree && (await ADD_OPERATOR.first(tx, [newId('opr'), name, role, digest(token), days]));
    if (!added) throw invalid('name', 'Another operator has this name. Choose another one.');
    await recordOperator(tx, context, added.id, { added: name, role });
    return added;
  });
  return { operator, token };
}

/**
 * Gives an operator another role. Running subscriptions of the operator end, and webhooks too if the role creates none.
 * @throws ApiError not_found, validation_failed
 */
export const setOperatorRole = (context: Context, id: string, role: OperatorRole): Promise<Operator> =>
  change(context, id, { role }, async (tx) => {
    if (!mayCall(role, 'owner')) await disableWebhooks(tx, context, id);
    return found(await SET_ROLE.first(tx, [id, role]));
  });

/** Replaces the token of an operator, and ends the webhooks, at once. @throws ApiError not_found, or validation_failed for an ended one */
export async function renewOperatorToken(context: Context, id: string, days: number): Promise<OperatorWithToken> {
  const token = mintCredential('op');
  const operator = await change(context, id, { renewed: 'token' }, async (tx) => {
    await disableWebhooks(tx, context, id);
    return found(await RENEW_TOKEN.first(tx, [id, digest(token), days]));
  });
  return { operator, token };
}

/** Ends an operator, with the token and the webhooks, at once. The audit log keeps the name. @throws ApiError not_found */
export const endOperator = (context: Context, id: string): Promise<Operator> =>
  change(context, id, { ended: true }, async (tx) => {
    await disableWebhooks(tx, context, id);
    return found(await transition(tx, OPERATOR_LIFECYCLE, id, 'ENDED', { set: { endedAt: expression('now()') } }));
  });

async function change(
  context: Context,
  id: string,
  what: Record<string, unknown>,
  work: (tx: Transaction) => Promise<Operator>,
): Promise<Operator> {
  return context.db.transaction(async (tx) => {
    await lockOwnOperator(tx, context);
    const before = found(await find(tx, Operator, { id }));
    if (before.state === 'ENDED') throw invalid('id', `The operator ${before.name} has ended. Add a new one.`);
    const changed = await work(tx);
    await recordOperator(tx, context, id, what);
    tx.changed({ kind: 'credential', accountId: OPERATOR_ACCOUNT, id });
    return changed;
  });
}

/** Lets operators change one after the other, so that an ended one adds none. @throws ApiError as `requireOpen` does */
async function lockOwnOperator(tx: Transaction, context: Context): Promise<void> {
  await lockOperator(tx);
  await requireOpen(tx, context);
}

/** Disables the webhooks that an operator has created. */
const disableWebhooks = (tx: Transaction, context: Context, id: string): Promise<void> =>
  disableCreated(tx, OPERATOR_ACCOUNT, [id], actorOf(context));

const recordOperator = (tx: Transaction, context: Context, id: string, data: Record<string, unknown>) =>
  recordByOperator(tx, context, id, { type: 'operator.updated', data });
