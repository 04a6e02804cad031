/** The tiers of the catalog, for the operator. */
import type { CatalogItem, DedicatedDetails, VpsDetails } from '../../entities/catalog.ts';
import { type Announcement, repriceServers, withdrawReprice } from '../../resolvers/catalog/reprice.ts';
import {
  addDedicatedTier,
  addVpsTier,
  listTiers,
  offerTier,
  setPrice,
  updateTier,
  VIRTUALIZATIONS,
} from '../../resolvers/catalog/tiers.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { ServerKind } from '../servers/servers.ts';
import { Disk } from './catalog.ts';

const Virtualization = enumType('Virtualization', 'The way in which an engine makes VPS.', VIRTUALIZATIONS);
const detailsOf = ({ details }: CatalogItem) => details as Partial<VpsDetails & DedicatedDetails>;

const TierType = objectType<CatalogItem>('Tier', 'A tier of servers, as the operator sells it.', (t) => {
  const amount = (name: 'vcpus' | 'memoryMb' | 'diskGb' | 'cores' | 'threads' | 'portMbps' | 'deliveryHours') =>
    t.int({ nullable: true, resolve: (item) => detailsOf(item)[name] ?? null });
  return {
    code: t.exposeString('code'),
    kind: t.field({ type: ServerKind, resolve: ({ kind }) => (kind === 'vps' ? 'VPS' : 'DEDICATED') }),
    name: t.exposeString('name'),
    offered: t.exposeBoolean('offered', { description: 'Whether customers can order it.' }),
    position: t.exposeInt('position', { description: 'Lists begin with the lowest.' }),
    version: t.exposeInt('version', { description: 'Grows with each change by an operator.' }),
    priceMonthUsd: t.field({ type: 'Usd', resolve: ({ priceMonthMicros }) => priceMonthMicros ?? 0n }),
    setupFeeUsd: t.field({ type: 'Usd', resolve: ({ setupFeeMicros }) => setupFeeMicros ?? 0n }),
    vcpus: amount('vcpus'),
    cpuModel: t.string({ nullable: true, resolve: (item) => detailsOf(item).cpuModel ?? null }),
    cores: amount('cores'),
    threads: amount('threads'),
    memoryMb: amount('memoryMb'),
    diskGb: amount('diskGb'),
    diskType: t.string({ nullable: true, resolve: (item) => detailsOf(item).diskType ?? null }),
    disks: t.field({ type: [Disk], resolve: (item) => detailsOf(item).disks ?? [] }),
    trafficTb: t.float({
      nullable: true,
      description: 'The outgoing traffic of a month; null: unmetered.',
      resolve: (item) => detailsOf(item).trafficTb ?? null,
    }),
    extraTrafficTbUsd: t.field({
      type: 'Usd',
      nullable: true,
      description: 'The price of each begun TB above that. Null or 0: the machine gets slow instead.',
      resolve: (item) => (detailsOf(item).extraTbMicros == null ? null : BigInt(detailsOf(item).extraTbMicros!)),
    }),
    slowMbps: t.int({
      nullable: true,
      description: 'The speed of a slow machine. Null: 10.',
      resolve: (item) => detailsOf(item).slowMbps ?? null,
    }),
    portMbps: amount('portMbps'),
    virtualization: t.string({ nullable: true, resolve: (item) => detailsOf(item).virtualization ?? null }),
    nesting: t.boolean({
      description: 'Whether containers can run in the machine.',
      resolve: (item) => detailsOf(item).nesting ?? false,
    }),
    deliveryHours: amount('deliveryHours'),
  };
});

const AnnouncementType = objectType<Announcement>('Announcement', 'A price that customers were told.', (t) => ({
  servers: t.exposeInt('servers', { description: 'The number of servers whose next price has changed.' }),
  promised: t.exposeInt('promised', {
    description:
      'The number of servers that first take a lower price that was promised. Announce again after their renewal.',
  }),
  priceMonthUsd: t.expose('priceMonthMicros', { type: 'Usd' }),
}));

type Fields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
const amount = (t: Fields, description?: string) => t.field({ type: 'Amount', required: true, description });
const extraTraffic = (t: Fields) => ({
  extraTrafficTbUsd: t.field({
    type: 'Usd',
    description: 'VPS only: the US dollars for each begun TB above the traffic. 0: the machine gets slow instead.',
  }),
  slowMbps: t.field({ type: 'Amount', description: 'VPS only: the speed of a slow machine. Default: 10.' }),
});
const price = (t: Fields) => ({
  priceMonthUsd: t.field({ type: 'Usd', required: true, description: 'The price of a month, paid in advance.' }),
  setupFeeUsd: t.field({ type: 'Usd', required: true, defaultValue: 0n, description: 'Paid once, and not refunded.' }),
});
const newTier = (t: Fields) => ({
  code: t.field({ type: 'Code', required: true, description: 'The code for orders. It never changes.' }),
  name: t.field({ type: 'Line', required: true, description: 'A name for humans.' }),
  ...price(t),
  memoryMb: amount(t),
  portMbps: t.field({ type: 'Amount', required: true, defaultValue: 1000 }),
});
const AddVpsTierInput = inputType('AddVpsTierInput', (t) => ({
  ...newTier(t),
  vcpus: amount(t),
  diskGb: amount(t),
  diskType: t.field({ type: 'Line', required: true, defaultValue: 'NVMe' }),
  trafficTb: t.field({ type: 'Terabytes', required: true, description: 'The outgoing traffic of a month.' }),
  virtualization: t.field({ type: Virtualization, required: true, defaultValue: 'CONTAINER' }),
  nesting: t.boolean({
    required: true,
    defaultValue: false,
    description: 'Whether containers can run in the machine.',
  }),
  ...extraTraffic(t),
}));
const DiskInput = inputType('DiskInput', (t) => ({
  count: amount(t),
  sizeGb: amount(t),
  type: t.field({ type: 'Line', required: true, description: 'Such as NVMe.' }),
}));
const AddDedicatedTierInput = inputType('AddDedicatedTierInput', (t) => ({
  ...newTier(t),
  cpuModel: t.field({ type: 'Line', required: true }),
  cores: amount(t),
  threads: amount(t),
  disks: t.field({
    type: [DiskInput],
    required: true,
    description: 'Such as [{"count": 2, "sizeGb": 960, "type": "NVMe"}].',
  }),
  trafficTb: t.field({ type: 'Terabytes', description: 'The outgoing traffic of a month. Default: unmetered.' }),
  deliveryHours: amount(t, 'The usual time of delivery, in hours.'),
}));
const UpdateTierInput = inputType('UpdateTierInput', (t) => ({
  name: t.field({ type: 'Line' }),
  position: t.field({ type: 'Amount', description: 'Lists begin with the lowest.' }),
  trafficTb: t.field({ type: 'Terabytes', description: 'The outgoing traffic of a month, also of present servers.' }),
  portMbps: t.field({ type: 'Amount' }),
  ...extraTraffic(t),
  deliveryHours: t.field({ type: 'Amount', description: 'Dedicated servers only.' }),
}));

/** Scalars of money are micro-USD here, and their names say US dollars. */
const inMicros = <T extends { extraTrafficTbUsd?: bigint | null | undefined }>({ extraTrafficTbUsd, ...rest }: T) => ({
  ...rest,
  extraTrafficTbMicros: extraTrafficTbUsd,
});
const priceInMicros = <T extends { priceMonthUsd: bigint; setupFeeUsd: bigint }>({
  priceMonthUsd,
  setupFeeUsd,
  ...rest
}: T) => ({ ...rest, priceMonthMicros: priceMonthUsd, setupFeeMicros: setupFeeUsd });

builder.queryFields((t) => ({
  tiers: t.field({
    type: [TierType],
    scope: 'operator',
    description: 'All tiers, including withdrawn ones.',
    resolve: (_, __, context) => listTiers(context),
  }),
}));

const code = { type: 'Code', required: true, description: 'The code of a tier.' } as const;
/** The argument by which the later of two operators hears of the earlier change. */
export const SEEN_VERSION = {
  type: 'Amount',
  description: 'The version that you saw. The service refuses the change of another one.',
} as const;
const owner = { type: TierType, scope: 'operator', right: 'owner' } as const;
builder.mutationFields((t) => ({
  addVpsTier: t.field({
    ...owner,
    description: 'Offers a new tier of VPS. Regions sell it once `setStock` says how many.',
    args: { input: t.arg({ type: AddVpsTierInput, required: true }) },
    resolve: (_, { input }, context) => addVpsTier(context, inMicros(priceInMicros(input))),
  }),
  addDedicatedTier: t.field({
    ...owner,
    description: 'Offers a new tier of dedicated servers. Regions sell it once `setStock` says how many.',
    args: { input: t.arg({ type: AddDedicatedTierInput, required: true }) },
    resolve: (_, { input }, context) => addDedicatedTier(context, priceInMicros(input)),
  }),
  updateTier: t.field({
    ...owner,
    description:
      'Changes the given fields of a tier. Its servers get no less than before. Its size never changes: add another tier.',
    args: { code: t.arg(code), version: t.arg(SEEN_VERSION), input: t.arg({ type: UpdateTierInput, required: true }) },
    resolve: (_, args, context) => updateTier(context, args.code, inMicros(args.input), args.version),
  }),
  setPrice: t.field({
    ...owner,
    description: 'Sets the price of a tier for new orders and resizes. Servers keep their price.',
    args: {
      code: t.arg(code),
      version: t.arg(SEEN_VERSION),
      priceMonthUsd: t.arg({ type: 'Usd', required: true, description: 'The price of a month, 0.00073 or more.' }),
      setupFeeUsd: t.arg({ type: 'Usd', description: 'Paid once, and not refunded. Default: the present one.' }),
    },
    resolve: (_, { code, version, priceMonthUsd, setupFeeUsd }, context) =>
      setPrice(context, code, { priceMonthMicros: priceMonthUsd, setupFeeMicros: setupFeeUsd }, version),
  }),
  repriceServers: t.field({
    type: AnnouncementType,
    scope: 'operator',
    right: 'owner',
    description: 'Announces the price of a tier to its servers. Each takes it at its first renewal after the notice.',
    args: {
      code: t.arg(code),
      version: t.arg(SEEN_VERSION),
      noticeDays: t.arg({ type: 'Amount', required: true, description: 'Up to 365. A higher price needs 14 or more.' }),
    },
    resolve: (_, args, context) => repriceServers(context, args.code, args.noticeDays, args.version),
  }),
  withdrawReprice: t.field({
    type: AnnouncementType,
    scope: 'operator',
    right: 'owner',
    description: 'Withdraws the higher price that was announced to the servers of a tier. Promises of lower ones stay.',
    args: { code: t.arg(code) },
    resolve: (_, args, context) => withdrawReprice(context, args.code),
  }),
  offerTier: t.field({
    ...owner,
    description: 'Offers a tier again.',
    args: { code: t.arg(code), version: t.arg(SEEN_VERSION) },
    resolve: (_, args, context) => offerTier(context, args.code, true, args.version),
  }),
  withdrawTier: t.field({
    ...owner,
    description: 'Ends the orders of a tier. Its servers stay, and renew.',
    args: { code: t.arg(code), version: t.arg(SEEN_VERSION) },
    resolve: (_, args, context) => offerTier(context, args.code, false, args.version),
  }),
}));
