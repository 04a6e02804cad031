/** API keys: long-lived, scoped, shown once, and ten of them at most. */
import { ApiKey } from '../../entities/credential.ts';
import { ApiError } from '../../entities/errors.ts';
import { isId, newId } from '../../entities/ids.ts';
import { record } from '../../entities/record.ts';
import { digest, mintCredential } from '../../entities/secrets.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { lockAccount } from '../limits.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';

export interface CreatedApiKey {
  apiKey: ApiKey;
  /** Cannot be read again. */
  plaintext: string;
}

/**
 * Makes a key. A credential can make only keys that may do no more than itself; `full`, which the field asks for, may
 * make any.
 * @throws ApiError api_key_limit_reached
 */
export async function createApiKey(
  context: Context,
  { name, scope }: { name: string; scope: string },
): Promise<CreatedApiKey> {
  const accountId = accountOf(context);
  const plaintext = mintCredential('live');
  const id = newId('key');
  const apiKey = await context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const active = await tx.manager.countBy(ApiKey, { accountId, status: 'ACTIVE' });
    if (active >= context.limits.apiKeys) throw new ApiError('api_key_limit_reached');
    await tx.manager.insert(ApiKey, {
      id,
      accountId,
      name,
      scope: normalised(scope),
      prefix: plaintext.slice(0, 13),
      digest: digest(plaintext),
      status: 'ACTIVE',
    });
    await record(tx, accountId, id, { type: 'api_key.created', resource: 'api_key', actor: actorOf(context) });
    return tx.manager.findOneByOrFail(ApiKey, { id });
  });
  return { apiKey, plaintext };
}

/** A scope string without repetitions. */
const normalised = (scope: string) => [...new Set(scope.split(' '))].join(' ');

export function listApiKeys(context: Context, request: PageRequest): Promise<Page<ApiKey>> {
  return pageOfAccount(context, ApiKey, request);
}

/** Revokes a key, which works at once, also for the key that asks. @throws ApiError not_found */
export async function revokeApiKey(context: Context, id: string): Promise<ApiKey> {
  const accountId = accountOf(context);
  if (!isId('key', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    const apiKey = await tx.manager.findOne(ApiKey, { where: { id, accountId }, lock: { mode: 'pessimistic_write' } });
    if (!apiKey) throw new ApiError('not_found');
    if (apiKey.status !== 'ACTIVE') return apiKey;
    const revoked = { status: 'REVOKED', revokedAt: new Date() } as const;
    await tx.manager.update(ApiKey, { id }, revoked);
    await record(tx, accountId, id, { type: 'api_key.revoked', resource: 'api_key', actor: actorOf(context) });
    tx.changed({ kind: 'credential', accountId, id });
    return { ...apiKey, ...revoked };
  });
}
