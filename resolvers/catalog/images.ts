/** The images that machines are made from, as the operator offers them. Their codes are what drivers are told. */

import { type CatalogItem, columnsOfCatalog, type ImageDetails } from '../../entities/catalog.ts';
import type { Transaction } from '../../entities/database/database.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../invalid.ts';

export type NewImage = Pick<CatalogItem, 'code' | 'name'> & Omit<ImageDetails, 'deprecatedAt'>;

/** Those that are not offered, too. */
export const listImages = ({ db }: Context): Promise<CatalogItem[]> =>
  db.query(`select ${columnsOfCatalog} from catalog_item item where kind = 'image' order by position, code`);

/** Offers a new image. @throws ApiError validation_failed if the code is taken, or no code */
export async function addImage(context: Context, { code, name, ...details }: NewImage): Promise<CatalogItem> {
  if (!/^[a-z0-9][a-z0-9.-]{0,31}$/.test(code) || ['vps', 'dedicated', 'bastions', 'images'].includes(code))
    throw invalid('code', 'A code has up to 32 lower-case letters, digits, dots and hyphens.');
  return context.db.transaction(async (tx) => {
    const [added] = await tx.query<CatalogItem>(
      `insert into catalog_item as item (code, kind, name, position, details)
        select $1, 'image', $2, coalesce(max(position), 0) + 1, $3::jsonb from catalog_item
        on conflict do nothing returning ${columnsOfCatalog}`,
      [code, name, JSON.stringify({ ...details, deprecatedAt: null })],
    );
    if (!added) throw invalid('code', 'The code is taken.');
    await recordImage(tx, context, code, { offered: true });
    return added;
  });
}

/** Offers an image, or retires it: machines that have it keep it. @throws ApiError not_found */
export async function offerImage(context: Context, code: string, offered: boolean): Promise<CatalogItem> {
  return context.db.transaction(async (tx) => {
    const deprecatedAt = offered ? null : new Date().toISOString();
    const [image] = await tx.query<CatalogItem>(
      `update catalog_item item set offered = $2, details = details || $3::jsonb
        where code = $1 and kind = 'image' returning ${columnsOfCatalog}`,
      [code, offered, JSON.stringify({ deprecatedAt })],
    );
    if (!image) throw new ApiError('not_found');
    await recordImage(tx, context, code, { offered });
    return image;
  });
}

const recordImage = (tx: Transaction, context: Context, code: string, data: Record<string, unknown>) =>
  record(tx, OPERATOR_ACCOUNT, code, {
    ...{ type: 'catalog.updated', resource: 'image', actor: actorOf(context) },
    data,
  });
