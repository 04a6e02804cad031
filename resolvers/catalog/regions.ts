/** The regions of the operator, which the catalog calls bastions. A region sells where a host or an engine has room. */
import { type BastionDetails, type CatalogItem, LIST_ITEMS } from '../../entities/catalog.ts';
import { ApiError } from '../../entities/errors.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { addItem, changeItem, givenOf, type ItemChange } from './items.ts';

type Maybe<T> = T | null | undefined;

type Place = Omit<BastionDetails, 'status'>;
/** The members that the operator can change. Omitted ones stay. Null removes one that a region can lack. */
export type RegionChange = { [K in keyof Place]?: Maybe<Place[K]> } & {
  name?: Maybe<string>;
  position?: Maybe<number>;
};
export type NewRegion = Pick<CatalogItem, 'code' | 'name'> & RegionChange & Pick<Place, 'city' | 'country'>;

/** All regions in their order, including those that are not offered. */
export const listRegions = ({ db }: Context): Promise<CatalogItem[]> => LIST_ITEMS.all(db, [['bastion']]);

const NOWHERE = { latitude: null, longitude: null, testIpv4: null, testIpv6: null, lookingGlassUrl: null };

/** Offers a new region. @throws ApiError validation_failed */
export async function addRegion(context: Context, { code, name, ...given }: NewRegion): Promise<CatalogItem> {
  requireCountry(given);
  const details = { ...NOWHERE, ...given, status: 'operational' };
  return addItem(context, { code, kind: 'bastion', name, details });
}

/** Changes the given members. @throws ApiError unknown_region, validation_failed */
export async function updateRegion(
  context: Context,
  code: string,
  { name, position, city, country, ...place }: RegionChange,
  version?: Maybe<number>,
): Promise<CatalogItem> {
  const kept = givenOf({ city, country });
  requireCountry({ ...kept, ...place });
  const removable = Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined));
  return changeRegion(context, code, version, (item) => ({
    set: {
      ...givenOf({ name, position }),
      details: { ...(item.details as BastionDetails), ...kept, ...removable },
    },
    data: { updated: Object.keys({ ...givenOf({ name, position }), ...kept, ...removable }) },
  }));
}

/** Offers a region, or withdraws it. Its servers stay. @throws ApiError unknown_region, validation_failed */
export const offerRegion = (context: Context, code: string, offered: boolean, version?: Maybe<number>) =>
  changeRegion(context, code, version, () => ({ set: { offered }, data: { offered } }));

const changeRegion = (
  context: Context,
  code: string,
  version: Maybe<number>,
  change: (item: CatalogItem) => ItemChange,
): Promise<CatalogItem> =>
  changeItem(context, { code, kinds: ['bastion'], version }, () => new ApiError('unknown_region'), change);

/** @throws ApiError validation_failed */
function requireCountry({ country }: RegionChange): void {
  if (country != null && !/^[A-Z]{2}$/.test(country))
    throw invalid('country', 'A country has two capital letters (ISO 3166-1), such as NL.');
}
