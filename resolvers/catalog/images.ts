/** The images that the operator offers. Drivers know an image by its code. */
import { type CatalogItem, FIND_IMAGES, type ImageDetails, INSERT_IMAGE, OFFER_IMAGE } from '../../entities/catalog.ts';
import { databaseTime } from '../../entities/database/clock.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { VM_SUFFIX } from '../../entities/servers/engine.ts';
import type { Context } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';

export type NewImage = Pick<CatalogItem, 'code' | 'name'> & Omit<ImageDetails, 'deprecatedAt'>;

/** All images, including those that are not offered. */
export const listImages = ({ db }: Context): Promise<CatalogItem[]> => FIND_IMAGES.all(db);

/** Offers a new image. @throws ApiError validation_failed if its code is taken or malformed */
export async function addImage(context: Context, { code, name, ...details }: NewImage): Promise<CatalogItem> {
  if (!/^[a-z0-9][a-z0-9.-]{0,31}$/.test(code) || ['vps', 'dedicated', 'bastions', 'images'].includes(code))
    throw invalid('code', 'A code has up to 32 lower-case letters, digits, dots and hyphens.');
  if (code.endsWith(VM_SUFFIX)) throw invalid('code', `Engines name the image of a virtual machine by ${VM_SUFFIX}.`);
  return context.db.transaction(async (tx) => {
    const added = await INSERT_IMAGE.first(tx, [code, name, JSON.stringify({ ...details, deprecatedAt: null })]);
    if (!added) throw invalid('code', 'The code is taken.');
    await recordImage(tx, context, code, { offered: true });
    return added;
  });
}

/** Offers an image, or retires it. Machines keep a retired image. @throws ApiError not_found */
export async function offerImage(context: Context, code: string, offered: boolean): Promise<CatalogItem> {
  return context.db.transaction(async (tx) => {
    const deprecatedAt = offered ? null : (await databaseTime(tx)).toISOString();
    const image = found(await OFFER_IMAGE.first(tx, [code, offered, JSON.stringify({ deprecatedAt })]));
    await recordImage(tx, context, code, { offered });
    return image;
  });
}

const recordImage = (tx: Transaction, context: Context, code: string, data: Record<string, unknown>) =>
  recordByOperator(tx, context, code, { type: 'catalog.updated', resource: 'image', data });
