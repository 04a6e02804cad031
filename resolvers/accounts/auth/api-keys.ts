/** API keys: long-lived, scoped, shown once, and ten of them at most. */

import { ApiKey } from '../../../entities/accounts/credential.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { isId, newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../../pages.ts';

export interface CreatedApiKey {
  apiKey: ApiKey;
  /** Cannot be read again. */
  plaintext: string;
}

export interface NewApiKey {
  name: string;
  scope: string;
  /** In the form `address/bits`; none: from everywhere. */
  ipAllowlist?: string[] | null | undefined;
  expiresAt?: Date | null | undefined;
  /** Micro-USD in a calendar month (UTC). */
  spendLimitUsd?: bigint | null | undefined;
}

/**
 * Makes a key. A credential can make only keys that may do no more than itself; `full`, which the field asks for, may
 * make any, unless it is itself limited by network, time or spending.
 * @throws ApiError api_key_limit_reached, insufficient_scope or validation_failed
 */
export async function createApiKey(context: Context, given: NewApiKey): Promise<CreatedApiKey> {
  const accountId = accountOf(context);
  const { name, scope, ipAllowlist, expiresAt = null, spendLimitUsd = null } = given;
  if (expiresAt && !(expiresAt.getTime() > Date.now())) throw inThePast();
  const plaintext = mintCredential('live');
  const id = newId('key');
  const apiKey = await context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    await refuseLimitedMaker(tx, context);
    const [active] = await tx.query<{ keys: number }>(
      `select count(*)::int as keys from api_key where account_id = $1 and ${STATUS_NOW} = 'ACTIVE'`,
      [accountId],
    );
    if (active!.keys >= context.limits.apiKeys) throw new ApiError('api_key_limit_reached');
    await tx.manager.insert(ApiKey, {
      id,
      accountId,
      name,
      scope: normalised(scope),
      prefix: plaintext.slice(0, 13),
      digest: digest(plaintext),
      status: 'ACTIVE',
      ipAllowlist: [...new Set(ipAllowlist)],
      expiresAt,
      spendLimitMicros: spendLimitUsd,
    });
    if (expiresAt) await context.provisioning.accounts.expireApiKey(tx, { id, accountId, expiresAt });
    await record(tx, accountId, id, { type: 'api_key.created', actor: actorOf(context) });
    return tx.manager.findOneByOrFail(ApiKey, { id });
  });
  return { apiKey, plaintext };
}

/** A scope string without repetitions. */
const normalised = (scope: string) => [...new Set(scope.split(' '))].join(' ');

function inThePast(): ApiError {
  const message = 'expires_at must be in the future.';
  return new ApiError('validation_failed', message, { errors: [{ field: 'expires_at', code: 'too_low', message }] });
}

/** A key that is limited could make itself one that is not. */
async function refuseLimitedMaker(tx: Transaction, { viewer }: Context): Promise<void> {
  if (viewer?.kind !== 'api_key') return;
  const maker = await tx.manager.findOneByOrFail(ApiKey, { id: viewer.credentialId });
  if (!maker.ipAllowlist.length && !maker.expiresAt && maker.spendLimitMicros === null) return;
  const detail = 'An API key that is limited by network, time or spending cannot make others. Use an access token.';
  throw new ApiError('insufficient_scope', detail, { requiredScope: 'full' });
}

/** The status by the clock: the worker tells of an expiry a moment later. */
const STATUS_NOW = `case when status = 'ACTIVE' and expires_at <= now() then 'EXPIRED' else status end`;

export type ApiKeyFilter = PageRequest & { status?: ApiKey['status'] | null | undefined };

export async function listApiKeys(context: Context, { status = null, ...page }: ApiKeyFilter): Promise<Page<ApiKey>> {
  const filters = { status };
  const rows = await context.db.query<ApiKey>(
    `select ${columnsOf(ApiKey)}, ${STATUS_NOW} as status from api_key
    where ($1::text is null or account_id = $1) and ($2::text is null or id < $2) and ($3::text is null or ${STATUS_NOW} = $3)
    order by id desc limit $4`,
    [context.viewer?.accountId ?? null, afterCursor(page, filters), status, page.limit + 1],
  );
  return pageFrom(rows, page, filters);
}

/** Revokes a key, which works at once, also for the key that asks. @throws ApiError not_found */
export async function revokeApiKey(context: Context, id: string): Promise<ApiKey> {
  const accountId = accountOf(context);
  if (!isId('key', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const apiKey = await tx.manager.findOneBy(ApiKey, { id, accountId });
    if (!apiKey) throw new ApiError('not_found');
    if (apiKey.status !== 'ACTIVE') return apiKey;
    if (apiKey.expiresAt && apiKey.expiresAt.getTime() <= Date.now()) return { ...apiKey, status: 'EXPIRED' };
    const revoked = { status: 'REVOKED', revokedAt: new Date() } as const;
    await tx.manager.update(ApiKey, { id }, revoked);
    await record(tx, accountId, id, { type: 'api_key.revoked', actor: actorOf(context) });
    tx.changed({ kind: 'credential', accountId, id });
    return { ...apiKey, ...revoked };
  });
}
