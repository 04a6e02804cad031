/** Ends the credentials of all accounts and operators, because a restore revives those that have ended since the backup. */

import { LIST_WAYS_IN } from '../../entities/accounts/oauth-client.ts';
import { LIST_HOLDERS } from '../../entities/accounts/revoke.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { lockOperator } from '../../entities/payments/ledger.ts';
import type { Context } from '../context.ts';
import { endOperator, listOperators } from '../operators.ts';
import { type Revoked, replaceSecrets, revokeAccount } from './auth/revoke.ts';

/** The numbers of ended things of all accounts. */
export interface RevokedAll extends Revoked {
  accounts: number;
  operatorsEnded: number;
  /** The OAuth clients that are the only way into their accounts. They stay, with their secrets. */
  clientsKept: string[];
}

/**
 * Ends the credentials of each account as `revokeAccount` does, disables the operator's webhooks, and ends all operators. The caller's
 * own operator is the last to end. An interrupted call has ended some, and the next one ends the others.
 */
export async function revokeAllCredentials(context: Context, reason: string): Promise<RevokedAll> {
  const all: RevokedAll = {
    ...{ accounts: 0, sessionsRevoked: 0, apiKeysRevoked: 0, oauthClientsDeleted: 0, webhookSecretsReplaced: 0 },
    ...{ operatorsEnded: 0, clientsKept: [] },
  };
  for (const { accountId } of await LIST_HOLDERS.all(context.db)) {
    const revoked = await revokeAccount(context, accountId, reason);
    all.accounts++;
    for (const key of Object.keys(revoked) as (keyof Revoked)[]) all[key] += revoked[key];
  }
  all.webhookSecretsReplaced += await context.db.transaction(async (tx) => {
    await lockOperator(tx);
    return replaceSecrets(context, tx, OPERATOR_ACCOUNT);
  });
  all.operatorsEnded = await endAllOperators(context);
  all.clientsKept = (await LIST_WAYS_IN.all(context.db)).map(({ id }) => id);
  return all;
}

/** @returns how many */
async function endAllOperators(context: Context): Promise<number> {
  const isOwn = ({ id }: { id: string }) => Number(id === context.viewer?.credentialId);
  const operators = (await listOperators(context, null)).filter(({ state }) => state !== 'ENDED');
  for (const { id } of operators.toSorted((a, b) => isOwn(a) - isOwn(b))) await endOperator(context, id);
  return operators.length;
}
