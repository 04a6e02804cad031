/** API keys: long-lived credentials with a scope, which the service shows once. */
import {
  API_KEY_LIFECYCLE,
  ApiKey,
  COUNT_ACTIVE_API_KEYS,
  FIND_OWN_API_KEY,
  LIST_API_KEYS,
} from '../../../entities/accounts/credential.ts';
import { insert } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { expression, transition } from '../../../entities/history/transition.ts';
import { isId, newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { found } from '../../errors.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../../pages.ts';

export interface CreatedApiKey {
  apiKey: ApiKey;
  /** The key itself; the service cannot show it again. */
  plaintext: string;
}

export interface NewApiKey {
  name: string;
  scope: string;
  /** Networks in the form `address/bits`; none: all networks. */
  ipAllowlist?: string[] | null | undefined;
  expiresAt?: Date | null | undefined;
  /** Micro-USD in a calendar month (UTC). */
  spendLimitMicros?: bigint | null | undefined;
}

/**
 * Creates a key. The field requires the scope `full`, so the key may have any scope. An API key with a limit of network,
 * time or spending cannot create keys.
 * @throws ApiError api_key_limit_reached, insufficient_scope or validation_failed
 */
export async function createApiKey(context: Context, given: NewApiKey): Promise<CreatedApiKey> {
  const accountId = accountOf(context);
  const { name, scope, ipAllowlist, expiresAt = null, spendLimitMicros = null } = given;
  if (expiresAt && !(expiresAt.getTime() > Date.now())) throw inThePast();
  const plaintext = mintCredential('live');
  const id = newId('key');
  const apiKey = await context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    await refuseLimitedMaker(tx, context);
    const active = await COUNT_ACTIVE_API_KEYS.first(tx, [accountId]);
    if (active!.keys >= context.limits.apiKeys) throw new ApiError('api_key_limit_reached');
    await insert(tx, ApiKey, {
      id,
      accountId,
      name,
      scope: normalised(scope),
      prefix: plaintext.slice(0, 13),
      digest: digest(plaintext),
      status: 'ACTIVE',
      ipAllowlist: [...new Set(ipAllowlist)],
      expiresAt,
      spendLimitMicros,
    });
    const created = await tx.manager.findOneByOrFail(ApiKey, { id });
    if (expiresAt) await context.provisioning.accounts.expireApiKey(tx, { ...created, expiresAt });
    await record(tx, accountId, id, { type: 'api_key.created', actor: actorOf(context) });
    return created;
  });
  return { apiKey, plaintext };
}

/** A scope string without repetitions. */
const normalised = (scope: string) => [...new Set(scope.split(' '))].join(' ');

function inThePast(): ApiError {
  const message = 'expires_at must be in the future.';
  return new ApiError('validation_failed', message, { errors: [{ field: 'expires_at', code: 'too_low', message }] });
}

/** @throws ApiError insufficient_scope if the caller uses an API key with limits */
async function refuseLimitedMaker(tx: Transaction, { viewer }: Context): Promise<void> {
  if (viewer?.kind !== 'api_key') return;
  const maker = await tx.manager.findOneByOrFail(ApiKey, { id: viewer.credentialId });
  if (!maker.ipAllowlist.length && !maker.expiresAt && maker.spendLimitMicros === null) return;
  const detail = 'An API key with a limit of network, time or spending cannot create API keys. Use an access token.';
  throw new ApiError('insufficient_scope', detail, { requiredScope: 'full' });
}

export type ApiKeyFilter = PageRequest & { status?: ApiKey['status'] | null | undefined };

export async function listApiKeys(context: Context, { status = null, ...page }: ApiKeyFilter): Promise<Page<ApiKey>> {
  const filters = { status };
  const accountId = context.viewer?.accountId ?? null;
  const rows = await LIST_API_KEYS.all(context.db, [accountId, afterCursor(page, filters), status, page.limit + 1]);
  return pageFrom(rows, page, filters);
}

/** Revokes a key at once, even if the caller uses it. @throws ApiError not_found */
export async function revokeApiKey(context: Context, id: string): Promise<ApiKey> {
  const accountId = accountOf(context);
  if (!isId('key', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const apiKey = found(await FIND_OWN_API_KEY.first(tx, [id, accountId]));
    if (apiKey.status !== 'ACTIVE') return apiKey;
    const set = { revokedAt: expression('now()') };
    const revoked = await transition(tx, API_KEY_LIFECYCLE, id, 'REVOKED', { set });
    await record(tx, accountId, id, { type: 'api_key.revoked', actor: actorOf(context) });
    tx.changed({ kind: 'credential', accountId, id });
    return revoked!;
  });
}
