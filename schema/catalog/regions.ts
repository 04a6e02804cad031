/** The regions of the catalog, for the operator. Customers see them as bastions. */
import type { BastionDetails, CatalogItem } from '../../entities/catalog.ts';
import { addRegion, listRegions, offerRegion, updateRegion } from '../../resolvers/catalog/regions.ts';
import { builder, inputType, objectType } from '../builder.ts';
import { SEEN_VERSION } from './tiers.ts';

const detailsOf = ({ details }: CatalogItem) => details as BastionDetails;
const RegionType = objectType<CatalogItem>('Region', 'A data-centre location, as the operator sells it.', (t) => ({
  code: t.exposeString('code'),
  name: t.exposeString('name'),
  offered: t.exposeBoolean('offered', { description: 'Whether customers can order there.' }),
  position: t.exposeInt('position', { description: 'Lists begin with the lowest, and so do orders without a region.' }),
  version: t.exposeInt('version', { description: 'Grows with each change by an operator.' }),
  city: t.string({ resolve: (item) => detailsOf(item).city }),
  country: t.string({ description: 'ISO 3166-1 alpha-2.', resolve: (item) => detailsOf(item).country }),
  latitude: t.float({ nullable: true, resolve: (item) => detailsOf(item).latitude }),
  longitude: t.float({ nullable: true, resolve: (item) => detailsOf(item).longitude }),
  testIpv4: t.string({ nullable: true, resolve: (item) => detailsOf(item).testIpv4 }),
  testIpv6: t.string({ nullable: true, resolve: (item) => detailsOf(item).testIpv6 }),
  lookingGlassUrl: t.string({ nullable: true, resolve: (item) => detailsOf(item).lookingGlassUrl }),
}));

type Fields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
const optional = (t: Fields) => ({
  latitude: t.field({ type: 'Latitude' }),
  longitude: t.field({ type: 'Longitude' }),
  testIpv4: t.field({ type: 'IpAddress', description: 'An address for measurements.' }),
  testIpv6: t.field({ type: 'IpAddress', description: 'An address for measurements.' }),
  lookingGlassUrl: t.field({ type: 'HttpsUrl' }),
});
const COUNTRY = 'ISO 3166-1 alpha-2, such as NL.';
const AddRegionInput = inputType('AddRegionInput', (t) => ({
  code: t.field({ type: 'Code', required: true, description: 'The region of orders. It never changes.' }),
  name: t.field({ type: 'Line', required: true, description: 'A name for humans.' }),
  city: t.field({ type: 'Line', required: true }),
  country: t.field({ type: 'Line', required: true, description: COUNTRY }),
  ...optional(t),
}));
const UpdateRegionInput = inputType('UpdateRegionInput', (t) => ({
  name: t.field({ type: 'Line' }),
  position: t.field({ type: 'Amount', description: 'Lists begin with the lowest, and so do orders without a region.' }),
  city: t.field({ type: 'Line' }),
  country: t.field({ type: 'Line', description: COUNTRY }),
  ...optional(t),
}));

builder.queryFields((t) => ({
  regions: t.field({
    type: [RegionType],
    scope: 'operator',
    description: 'All regions, including withdrawn ones.',
    resolve: (_, __, context) => listRegions(context),
  }),
}));

const code = { type: 'Code', required: true, description: 'The code of a region.' } as const;
const owner = { type: RegionType, scope: 'operator', right: 'owner' } as const;
builder.mutationFields((t) => ({
  addRegion: t.field({
    ...owner,
    description:
      'Offers a new region. It sells once `setStock` says how many machines, and hosts or engines have room.',
    args: { input: t.arg({ type: AddRegionInput, required: true }) },
    resolve: (_, { input }, context) => addRegion(context, input),
  }),
  updateRegion: t.field({
    ...owner,
    description: 'Changes the given fields of a region.',
    args: {
      code: t.arg(code),
      version: t.arg(SEEN_VERSION),
      input: t.arg({ type: UpdateRegionInput, required: true }),
    },
    resolve: (_, args, context) => updateRegion(context, args.code, args.input, args.version),
  }),
  offerRegion: t.field({
    ...owner,
    description: 'Offers a region again.',
    args: { code: t.arg(code), version: t.arg(SEEN_VERSION) },
    resolve: (_, args, context) => offerRegion(context, args.code, true, args.version),
  }),
  withdrawRegion: t.field({
    ...owner,
    description: 'Ends the orders in a region. Its servers stay, and renew.',
    args: { code: t.arg(code), version: t.arg(SEEN_VERSION) },
    resolve: (_, args, context) => offerRegion(context, args.code, false, args.version),
  }),
}));
