/**
 * The named operators. A person signs in with a password and a second factor, which an invitation lets them choose. A tool has
 * a token of its own, which the service shows once and which expires.
 */
import { disableCreated } from '../entities/accounts/revoke.ts';
import { Totp } from '../entities/accounts/totp.ts';
import { find, remove, update } from '../entities/database/table.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { expression, transition } from '../entities/history/transition.ts';
import { newId } from '../entities/ids.ts';
import {
  ADD_INVITED,
  ADD_OPERATOR,
  LIST_OPERATORS,
  OPERATOR_LIFECYCLE,
  Operator,
  type OperatorRole,
  OperatorSession,
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
import { requireSeen } from './seen.ts';

export { OPERATOR_ROLES, OPERATOR_STATES } from '../entities/operator.ts';

export interface InvitedOperator {
  /** Unique among the operators that have not ended. */
  name: string;
  role: OperatorRole;
}
export interface NewOperator extends InvitedOperator {
  /** The days until the token expires. */
  days: number;
}

export interface OperatorWithToken {
  operator: Operator;
  /** The token itself; the service cannot show it again. */
  token: string;
}

export interface Invitation {
  operator: Operator;
  /** The code by which the operator chooses a password and a second factor, once; the service cannot show it again. */
  code: string;
}

/** An invitation expires after so many hours. */
const INVITATION_HOURS = 72;
/** The name of the owner by the token in DATA_DIR. */
const FIRST_OWNER = 'operator';

export const listOperators = ({ db }: Context, state: Operator['state'] | null): Promise<Operator[]> =>
  LIST_OPERATORS.all(db, [state]);

/** Adds an operator with a token, for a tool. @throws ApiError validation_failed if another operator has the name */
export async function addOperator(context: Context, { name, role, days }: NewOperator): Promise<OperatorWithToken> {
  const token = mintCredential('op');
  const operator = await context.db.transaction(async (tx) => {
    await lockOwnOperator(tx, context);
    const added = isFree(name) && (await ADD_OPERATOR.first(tx, [newId('opr'), name, role, digest(token), days]));
    if (!added) throw nameTaken();
    await recordOperator(tx, context, added.id, { added: name, role });
    return added;
  });
  return { operator, token };
}

/** Adds an operator who signs in, for a person. @throws ApiError validation_failed if another operator has the name */
export const inviteOperator = (context: Context, { name, role }: InvitedOperator): Promise<Invitation> =>
  context.db.transaction(async (tx) => {
    await lockOwnOperator(tx, context);
    const added = isFree(name) && (await ADD_INVITED.first(tx, [newId('opr'), name, role]));
    if (!added) throw nameTaken();
    await recordOperator(tx, context, added.id, { invited: name, role });
    return invite(tx, added.id);
  });

const isFree = (name: string): boolean => name.toLowerCase() !== FIRST_OWNER;
const nameTaken = () => invalid('name', 'Another operator has this name. Choose another one.');

/**
 * Invites an operator again who has lost the code, the password or the second factor. The earlier ones end at once, and the
 * sessions, a token and the webhooks, too.
 * @throws ApiError not_found, or validation_failed for an ended one
 */
export async function renewInvitation(context: Context, id: string): Promise<Invitation> {
  let code = '';
  const operator = await change(context, id, { invited: 'again' }, async (tx) => {
    await disableWebhooks(tx, context, id);
    await endSessions(tx, id);
    await remove(tx, Totp, { accountId: id });
    await update(tx, Operator, { id }, { tokenDigest: null, expiresAt: null, passwordHash: null });
    const invitation = await invite(tx, id);
    code = invitation.code;
    return invitation.operator;
  });
  return { operator, code };
}

async function invite(tx: Transaction, id: string): Promise<Invitation> {
  const code = mintCredential('oi');
  const invitationExpiresAt = expression(`now() + interval '${INVITATION_HOURS} hours'`);
  const set = { invitationDigest: digest(code), invitationExpiresAt };
  return { operator: found(await transition(tx, OPERATOR_LIFECYCLE, id, 'INVITED', { set })), code };
}

/**
 * Gives an operator another role. `seen` is the role that the caller saw, or absent. Sessions and running subscriptions
 * of the operator end, and webhooks too if the role creates none.
 * @throws ApiError not_found, validation_failed
 */
export const setOperatorRole = (
  context: Context,
  id: string,
  role: OperatorRole,
  seen?: OperatorRole | null,
): Promise<Operator> =>
  change(context, id, { role }, async (tx) => {
    const present = found(await find(tx, Operator, { id }));
    await requireSeen(tx, {
      ...{ what: 'the role', present: present.role, seen },
      ...{ type: 'operator.updated', subject: id },
    });
    // Its event would keep the operator from approving for days.
    if (present.role === role) throw invalid('role', 'The operator has this role already.');
    if (!mayCall(role, 'owner')) await disableWebhooks(tx, context, id);
    await endSessions(tx, id);
    return found(await SET_ROLE.first(tx, [id, role]));
  });

/**
 * Replaces the token of an operator, and ends the webhooks, at once.
 * @throws ApiError not_found, or validation_failed for an operator who has ended, or signs in
 */
export async function renewOperatorToken(context: Context, id: string, days: number): Promise<OperatorWithToken> {
  const token = mintCredential('op');
  const operator = await change(context, id, { renewed: 'token' }, async (tx) => {
    await disableWebhooks(tx, context, id);
    const { tokenDigest } = found(await find(tx, Operator, { id }));
    if (!tokenDigest)
      throw invalid('id', 'The operator signs in, and has no token. Invite them again by renewInvitation.');
    return found(await RENEW_TOKEN.first(tx, [id, digest(token), days]));
  });
  return { operator, token };
}

/**
 * Ends an operator at once, with the token, the sessions, the second factor and the webhooks. The audit log keeps the name.
 * @throws ApiError not_found
 */
export const endOperator = (context: Context, id: string): Promise<Operator> =>
  change(context, id, { ended: true }, async (tx) => {
    await disableWebhooks(tx, context, id);
    await endSessions(tx, id);
    await remove(tx, Totp, { accountId: id });
    const set = { endedAt: expression('now()'), passwordHash: null, invitationDigest: null };
    return found(await transition(tx, OPERATOR_LIFECYCLE, id, 'ENDED', { set }));
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

const endSessions = (tx: Transaction, operatorId: string) => remove(tx, OperatorSession, { operatorId });

/** Disables the webhooks that an operator has created. */
const disableWebhooks = (tx: Transaction, context: Context, id: string): Promise<void> =>
  disableCreated(tx, OPERATOR_ACCOUNT, [id], actorOf(context));

const recordOperator = (tx: Transaction, context: Context, id: string, data: Record<string, unknown>) =>
  recordByOperator(tx, context, id, { type: 'operator.updated', data });
