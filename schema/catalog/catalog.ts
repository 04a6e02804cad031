/** The catalog: VPS tiers, dedicated tiers, bastions (data centres) and images of operating systems. */
import DataLoader from 'dataloader';
import type {
  BastionDetails,
  CatalogItem,
  DedicatedDetails,
  ImageDetails,
  VpsDetails,
} from '../../entities/catalog.ts';
import { catalogGroup, catalogItem, catalogItems, type Offer } from '../../resolvers/catalog/catalog.ts';
import type { Context } from '../../resolvers/context.ts';
import { builder, enumType, objectType } from '../builder.ts';

type Tier<Details> = Offer & { item: CatalogItem & { details: Details } };

export const StockLevel = enumType('StockLevel', 'The stock of a tier.', ['AVAILABLE', 'LOW', 'NONE']);

const RegionStock = objectType<Offer['regions'][number]>('RegionStock', 'The stock of a tier at a bastion.', (t) => ({
  code: t.exposeString('code', { description: 'The code of the bastion.' }),
  stock: t.expose('stock', { type: StockLevel, description: 'Whether orders find room now.' }),
}));

export const CatalogItemType = builder.interfaceRef<Offer>('CatalogItem').implement({
  description: 'An item of the catalog. Its code is unique in all groups.',
  resolveType: ({ item }) =>
    ({ vps: 'VpsTier', dedicated: 'DedicatedTier', bastion: 'Bastion', image: 'OsImage' })[item.kind],
  fields: (t) => ({
    code: t.id({ description: 'The code for orders.', resolve: ({ item }) => item.code }),
    kind: t.string({ description: 'vps, dedicated, bastion or image.', resolve: ({ item }) => item.kind }),
    name: t.string({ description: 'A name for humans.', resolve: ({ item }) => item.name }),
  }),
});

/** Prices and stock, which tiers of both kinds have. */
const priced = builder.interfaceRef<Offer>('PricedTier').implement({
  description: 'A tier that can be ordered.',
  interfaces: [CatalogItemType],
  fields: (t) => ({
    priceMonthUsd: t.field({
      type: 'Usd',
      description: 'The price of a month, paid in advance.',
      resolve: ({ item }) => item.priceMonthMicros!,
    }),
    priceHourUsd: t.field({
      type: 'Usd',
      description: 'The month / 730: the refund of an unused hour.',
      resolve: ({ hourMicros }) => hourMicros!,
    }),
    setupFeeUsd: t.field({
      type: 'Usd',
      description: 'Paid once, and not refunded.',
      resolve: ({ item }) => item.setupFeeMicros!,
    }),
    regions: t.expose('regions', { type: [RegionStock], description: 'The bastions that offer it.' }),
  }),
});

const VpsTier = builder.objectRef<Tier<VpsDetails>>('VpsTier').implement({
  description: 'A tier of virtual servers.',
  interfaces: [CatalogItemType, priced],
  fields: (t) => ({
    vcpus: t.int({ description: 'The virtual processors.', resolve: ({ item }) => item.details.vcpus }),
    memoryMb: t.int({ description: 'The memory, in MB.', resolve: ({ item }) => item.details.memoryMb }),
    diskGb: t.int({ description: 'The disk, in GB.', resolve: ({ item }) => item.details.diskGb }),
    diskType: t.string({
      description: 'The kind of the disk, such as NVMe.',
      resolve: ({ item }) => item.details.diskType,
    }),
    trafficTb: t.float({
      description: 'The outgoing traffic of a month.',
      resolve: ({ item }) => item.details.trafficTb,
    }),
    extraTrafficTbUsd: t.field({
      type: 'Usd',
      nullable: true,
      description: 'The price of each begun TB above that; null: the machine gets slow until the next month.',
      resolve: ({ item: { details } }) => (details.extraTbMicros ? BigInt(details.extraTbMicros) : null),
    }),
    portMbps: t.int({
      description: 'The speed of the network port, in Mbit/s.',
      resolve: ({ item }) => item.details.portMbps,
    }),
    virtualization: t.string({
      description: 'container (shares the kernel) or kvm (a virtual machine).',
      resolve: ({ item }) => item.details.virtualization,
    }),
  }),
});

export const Disk = objectType<DedicatedDetails['disks'][number]>(
  'Disk',
  'Equal disks of a dedicated server.',
  (t) => ({
    count: t.exposeInt('count', { description: 'The number of these disks.' }),
    sizeGb: t.exposeInt('sizeGb', { description: 'The size of each disk, in GB.' }),
    type: t.exposeString('type', { description: 'The kind of the disks, such as NVMe.' }),
  }),
);

const DedicatedTier = builder.objectRef<Tier<DedicatedDetails>>('DedicatedTier').implement({
  description: 'A tier of dedicated servers.',
  interfaces: [CatalogItemType, priced],
  fields: (t) => ({
    cpuModel: t.string({ description: 'The model of the processor.', resolve: ({ item }) => item.details.cpuModel }),
    cores: t.int({ description: 'The cores of the processor.', resolve: ({ item }) => item.details.cores }),
    threads: t.int({ description: 'The threads of the processor.', resolve: ({ item }) => item.details.threads }),
    memoryMb: t.int({ description: 'The memory, in MB.', resolve: ({ item }) => item.details.memoryMb }),
    disks: t.field({ type: [Disk], description: 'The disks, by kind.', resolve: ({ item }) => item.details.disks }),
    trafficTb: t.float({
      nullable: true,
      description: 'The outgoing traffic of a month; null: unmetered.',
      resolve: ({ item }) => item.details.trafficTb,
    }),
    portMbps: t.int({
      description: 'The speed of the network port, in Mbit/s.',
      resolve: ({ item }) => item.details.portMbps,
    }),
    deliveryHours: t.int({
      description: 'The usual time of delivery, in hours.',
      resolve: ({ item }) => item.details.deliveryHours,
    }),
  }),
});

const Bastion = builder.objectRef<Tier<BastionDetails>>('Bastion').implement({
  description: 'A data-centre location; its code is the region of an order.',
  interfaces: [CatalogItemType],
  fields: (t) => ({
    city: t.string({ description: 'The city.', resolve: ({ item }) => item.details.city }),
    country: t.string({ description: 'ISO 3166-1 alpha-2.', resolve: ({ item }) => item.details.country }),
    latitude: t.float({ nullable: true, description: 'Degrees north.', resolve: ({ item }) => item.details.latitude }),
    longitude: t.float({ nullable: true, description: 'Degrees east.', resolve: ({ item }) => item.details.longitude }),
    testIpv4: t.string({
      nullable: true,
      description: 'An address for measurements.',
      resolve: ({ item }) => item.details.testIpv4,
    }),
    testIpv6: t.string({
      nullable: true,
      description: 'An address for measurements.',
      resolve: ({ item }) => item.details.testIpv6,
    }),
    lookingGlassUrl: t.string({
      nullable: true,
      description: 'A page that measures routes from here.',
      resolve: ({ item }) => item.details.lookingGlassUrl,
    }),
    status: t.string({ description: 'As in /v1/transparency/status.', resolve: ({ item }) => item.details.status }),
  }),
});

const OsImage = builder.objectRef<Tier<ImageDetails>>('OsImage').implement({
  description: 'An image of an operating system.',
  interfaces: [CatalogItemType],
  fields: (t) => ({
    family: t.string({ description: 'The distribution, such as debian.', resolve: ({ item }) => item.details.family }),
    version: t.string({ description: 'The version of the distribution.', resolve: ({ item }) => item.details.version }),
    architecture: t.string({
      description: 'The architecture of the processor, such as x86_64.',
      resolve: ({ item }) => item.details.architecture,
    }),
    minDiskGb: t.int({
      description: 'The smallest disk that it fits on, in GB.',
      resolve: ({ item }) => item.details.minDiskGb,
    }),
    minMemoryMb: t.int({
      description: 'The least memory that it runs with, in MB.',
      resolve: ({ item }) => item.details.minMemoryMb,
    }),
    cloudInit: t.boolean({ description: 'Whether it reads user_data.', resolve: ({ item }) => item.details.cloudInit }),
    defaultUser: t.string({
      description: 'The user for the first login.',
      resolve: ({ item }) => item.details.defaultUser,
    }),
    deprecatedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When orders of the image end; null: not planned.',
      resolve: ({ item: { details } }) => (details.deprecatedAt ? new Date(details.deprecatedAt) : null),
    }),
  }),
});

/**
 * Loads an item of the catalog, in one query with the others of the operation. The loader caches nothing. A subscription has
 * one context for its life, so a cache would always repeat the first value.
 */
export function loadOffer(context: Context, code: string): Promise<Offer | null> {
  let loader = loaders.get(context);
  if (!loader) {
    loader = new DataLoader((codes: readonly string[]) => catalogItems(context, codes), { cache: false });
    loaders.set(context, loader);
  }
  return loader.load(code);
}
const loaders = new WeakMap<Context, DataLoader<string, Offer | null>>();

const Catalog = objectType<Record<never, never>>('Catalog', 'The whole catalog.', (t) => ({
  vps: t.field({
    type: [VpsTier],
    description: 'The tiers of virtual servers.',
    resolve: (_, __, context) => catalogGroup(context, 'vps') as Promise<Tier<VpsDetails>[]>,
  }),
  dedicated: t.field({
    type: [DedicatedTier],
    description: 'The tiers of dedicated servers.',
    resolve: (_, __, context) => catalogGroup(context, 'dedicated') as Promise<Tier<DedicatedDetails>[]>,
  }),
  bastions: t.field({
    type: [Bastion],
    description: 'The data-centre locations.',
    resolve: (_, __, context) => catalogGroup(context, 'bastion') as Promise<Tier<BastionDetails>[]>,
  }),
  images: t.field({
    type: [OsImage],
    description: 'The images of operating systems.',
    resolve: (_, __, context) => catalogGroup(context, 'image') as Promise<Tier<ImageDetails>[]>,
  }),
}));

builder.queryFields((t) => ({
  catalog: t.field({
    type: Catalog,
    scope: 'public',
    description: 'All tiers, bastions and images that customers can order.',
    resolve: () => ({}),
  }),
  catalogItem: t.field({
    type: CatalogItemType,
    scope: 'public',
    description: 'One item of the catalog.',
    args: { code: t.arg({ type: 'ID', required: true, description: 'A code of the catalog.' }) },
    resolve: (_, { code }, context) => catalogItem(context, code),
  }),
}));
