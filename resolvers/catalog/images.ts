/** The images that the operator offers. Drivers know an image by its code. */
import { type CatalogItem, type ImageDetails, LIST_ITEMS } from '../../entities/catalog.ts';
import { databaseTime } from '../../entities/database/clock.ts';
import { ApiError } from '../../entities/errors.ts';
import { VM_SUFFIX } from '../../entities/servers/engine.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { addItem, changeItem } from './items.ts';

export type NewImage = Pick<CatalogItem, 'code' | 'name'> & Omit<ImageDetails, 'deprecatedAt'>;

/** All images, including those that are not offered. */
export const listImages = ({ db }: Context): Promise<CatalogItem[]> => LIST_ITEMS.all(db, [['image']]);

/** Offers a new image. @throws ApiError validation_failed if its code is taken or malformed */
export async function addImage(context: Context, { code, name, ...details }: NewImage): Promise<CatalogItem> {
  if (code.endsWith(VM_SUFFIX)) throw invalid('code', `Engines name the image of a virtual machine by ${VM_SUFFIX}.`);
  return addItem(context, { code, kind: 'image', name, details: { ...details, deprecatedAt: null } });
}

/** Offers an image, or retires it. Machines keep a retired image. @throws ApiError not_found */
export const offerImage = (context: Context, code: string, offered: boolean): Promise<CatalogItem> =>
  changeItem(
    context,
    { code, kinds: ['image'] },
    () => new ApiError('not_found'),
    async ({ details }, tx) => {
      const deprecatedAt = offered ? null : (await databaseTime(tx)).toISOString();
      return { set: { offered, details: { ...(details as ImageDetails), deprecatedAt } }, data: { offered } };
    },
  );
