/** The part that tiers, bastions and images have in common when an operator adds or changes them. */
import { CatalogItem, type CatalogKind, INSERT_ITEM } from '../../entities/catalog.ts';
import { lock, update } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import type { ApiError } from '../../entities/errors.ts';
import type { ResourceType } from '../../entities/history/event.ts';
import { usdFromMicros } from '../../entities/money.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { requireSeen } from '../seen.ts';

/** The names of the groups, which addresses of the API have in the place of a code. */
const GROUPS = ['vps', 'dedicated', 'bastions', 'images'];
const RESOURCE: Record<CatalogKind, ResourceType> = {
  vps: 'tier',
  dedicated: 'tier',
  bastion: 'region',
  image: 'image',
};

export type NewItem = Pick<CatalogItem, 'code' | 'kind' | 'name' | 'details'> &
  Partial<Pick<CatalogItem, 'priceMonthMicros' | 'setupFeeMicros'>>;
/** Columns that an operator changes, and the words of the event about them. */
export interface ItemChange {
  set: Partial<Omit<CatalogItem, 'code' | 'kind' | 'version' | 'sample'>>;
  data: Record<string, unknown>;
}

/** Offers a new item. @throws ApiError validation_failed if its code is malformed or taken */
export async function addItem(context: Context, item: NewItem): Promise<CatalogItem> {
  const { code, kind, name, details, priceMonthMicros = null, setupFeeMicros = null } = item;
  if (!/^[a-z0-9][a-z0-9.-]{0,31}$/.test(code) || GROUPS.includes(code))
    throw invalid(
      'code',
      'A code has up to 32 lower-case letters, digits, dots and hyphens, and is no name of a group.',
    );
  return context.db.transaction(async (tx) => {
    const values = [code, kind, name, JSON.stringify(details), priceMonthMicros, setupFeeMicros];
    const added = await INSERT_ITEM.first(tx, values);
    if (!added) throw invalid('code', 'The code is taken. Codes are unique over tiers, regions and images.');
    await recordItem(tx, context, added, { added: true, ...pricesOf(added) });
    return added;
  });
}

/**
 * Changes an item under its lock.
 * @param version the version that the operator saw; absent: any
 * @param first takes the locks that come before that of the item
 * @throws the error of `unknown`, or ApiError validation_failed if another operator has changed the item meanwhile
 */
export async function changeItem(
  context: Context,
  {
    code,
    kinds,
    version,
    first,
  }: {
    code: string;
    kinds: readonly CatalogKind[];
    version?: number | null | undefined;
    first?: (tx: Transaction) => Promise<unknown>;
  },
  unknown: () => ApiError,
  change: (item: CatalogItem, tx: Transaction) => ItemChange | Promise<ItemChange>,
): Promise<CatalogItem> {
  return context.db.transaction(async (tx) => {
    await first?.(tx);
    const item = await lock(tx, CatalogItem, { code });
    if (!item || !kinds.includes(item.kind)) throw unknown();
    const compared = { what: code, present: item.version, seen: version, field: 'version' };
    await requireSeen(tx, { ...compared, type: 'catalog.updated', subject: code });
    const { set, data } = await change(item, tx);
    const changed = { ...set, version: item.version + 1 };
    await update(tx, CatalogItem, { code }, changed);
    await recordItem(tx, context, item, data);
    return { ...item, ...changed };
  });
}

const recordItem = (tx: Transaction, context: Context, { code, kind }: CatalogItem, data: Record<string, unknown>) =>
  recordByOperator(tx, context, code, { type: 'catalog.updated', resource: RESOURCE[kind], data });

/** Returns the prices of a tier in US dollars, for events. Other items have none. */
export const pricesOf = ({ priceMonthMicros, setupFeeMicros }: Partial<CatalogItem>): Record<string, unknown> =>
  priceMonthMicros == null
    ? {}
    : { priceMonthUsd: usdFromMicros(priceMonthMicros), setupFeeUsd: usdFromMicros(setupFeeMicros ?? 0n) };

/** The members that are given, without those that are null or absent. */
export const givenOf = <T extends object>(members: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value != null)) as never;
