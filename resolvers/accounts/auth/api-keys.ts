/** API keys: long-lived credentials with a scope, which the service shows once. */
import {
  ApiKey,
  COUNT_ACTIVE_API_KEYS,
  FIND_OWN_API_KEY,
  LIST_API_KEYS,
} from '../../../entities/accounts/credential.ts';
import { revokeCredentials } from '../../../entities/accounts/revoke.ts';
import { insert } from '../../../entities/database/table.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { isId, newId } from '../../../entities/ids.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { found, limitReached } from '../../errors.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../../pages.ts';
import { lockOwnAccount } from '../account.ts';
import { type AskedLimits, newLimits } from './inherited-limits.ts';

export interface CreatedApiKey {
  apiKey: ApiKey;
  /** The key itself; the service cannot show it again. */
  plaintext: string;
}

export interface NewApiKey extends AskedLimits {
  name: string;
  scope: string;
}

/**
 * Creates a key. The field requires the scope `full`, so the key may have any scope.
 * @throws ApiError api_key_limit_reached, validation_failed, or insufficient_scope for limits wider than the caller's
 */
export async function createApiKey(context: Context, given: NewApiKey): Promise<CreatedApiKey> {
  const accountId = accountOf(context);
  const { name, scope, ...asked } = given;
  const plaintext = mintCredential('live');
  const id = newId('key');
  const apiKey = await context.db.transaction(async (tx) => {
    await lockOwnAccount(tx, context);
    const limits = newLimits(context, asked);
    const active = await COUNT_ACTIVE_API_KEYS.first(tx, [accountId]);
    if (active!.keys >= context.limits.apiKeys) throw limitReached('api_key_limit_reached', context.limits.apiKeys);
    await insert(tx, ApiKey, {
      id,
      accountId,
      name,
      scope: normalised(scope),
      prefix: plaintext.slice(0, 13),
      digest: digest(plaintext),
      status: 'ACTIVE',
      ...limits,
    });
    const created = await tx.manager.findOneByOrFail(ApiKey, { id });
    const { expiresAt } = created;
    if (expiresAt) await context.provisioning.accounts.expireApiKey(tx, { ...created, expiresAt });
    await record(tx, accountId, id, { type: 'api_key.created', actor: actorOf(context) });
    return created;
  });
  return { apiKey, plaintext };
}

/** A scope string without repetitions. */
const normalised = (scope: string) => [...new Set(scope.split(' '))].join(' ');

export type ApiKeyFilter = PageRequest & { status?: readonly ApiKey['status'][] | null | undefined };

export async function listApiKeys(context: Context, { status = null, ...page }: ApiKeyFilter): Promise<Page<ApiKey>> {
  const filters = { status };
  const accountId = context.viewer?.accountId ?? null;
  const rows = await LIST_API_KEYS.all(context.db, [accountId, afterCursor(page, filters), status, page.limit + 1]);
  return pageFrom(rows, page, filters);
}

/** Revokes a key and the credentials that it created, even if the caller uses it. @throws ApiError not_found */
export async function revokeApiKey(context: Context, id: string): Promise<ApiKey> {
  if (!isId('key', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    const accountId = await lockOwnAccount(tx, context, 'while suspended');
    const apiKey = found(await FIND_OWN_API_KEY.first(tx, [id, accountId]));
    if (apiKey.status !== 'ACTIVE') return apiKey;
    const { apiKeys } = await revokeCredentials(tx, accountId, [id], actorOf(context));
    return apiKeys.find((revoked) => revoked.id === id)!;
  });
}
