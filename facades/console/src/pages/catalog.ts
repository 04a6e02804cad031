/** The pages about the offer. */
import type { Row } from '../api.ts';
import { is, type Page } from './page.ts';

export const CATALOG: readonly Page[] = [
  {
    ...{ path: 'regions', group: 'Catalog', title: 'Regions', list: 'regions', key: 'code' },
    fields: `code name offered position version city country latitude longitude testIpv4 testIpv6 lookingGlassUrl`,
    columns: [
      { field: 'name', title: 'Region' },
      { field: 'code', title: 'Code', as: 'code' },
      { field: 'offered', title: 'Offered' },
      { field: 'city', title: 'City', wide: true },
      { field: 'country', title: 'Country', wide: true },
    ],
    actions: [{ mutation: 'addRegion', label: 'Add a region' }],
    rowActions: [
      {
        mutation: 'updateRegion',
        label: 'Change',
        of: ({ code, version, name, position, city, country }) => ({
          ...{ code, version },
          input: { name, position, city, country },
        }),
      },
      { mutation: 'offerRegion', label: 'Offer', of: seen, when: is('offered', false) },
      { mutation: 'withdrawRegion', label: 'Withdraw', of: seen, when: is('offered', true) },
    ],
    empty: 'No region yet. Add the data centre of your first machines.',
  },
  {
    ...{ path: 'tiers', group: 'Catalog', title: 'Tiers and prices', list: 'tiers', key: 'code' },
    fields: `code kind name offered position version priceMonthUsd setupFeeUsd vcpus cpuModel cores threads memoryMb diskGb
      diskType disks { count sizeGb type } trafficTb extraTrafficTbUsd slowMbps portMbps virtualization nesting deliveryHours`,
    columns: [
      { field: 'code', title: 'Tier', as: 'code' },
      { field: 'name', title: 'Name' },
      { field: 'kind', title: 'Kind', wide: true },
      { field: 'offered', title: 'Offered', wide: true },
      { field: 'priceMonthUsd', title: 'Month', as: 'number' },
      { field: 'setupFeeUsd', title: 'Setup', as: 'number', wide: true },
    ],
    actions: [
      { mutation: 'addVpsTier', label: 'Add a tier of VPS' },
      { mutation: 'addDedicatedTier', label: 'Add a tier of dedicated servers' },
    ],
    rowActions: [
      {
        ...{ mutation: 'setPrice', label: 'Set the price', of: seen },
        first: ({ priceMonthUsd, setupFeeUsd }) => ({ priceMonthUsd, setupFeeUsd }),
      },
      {
        ...{ mutation: 'repriceServers', label: 'Reprice its servers', of: seen, destroys: true },
        tells: 'servers promised',
      },
      {
        ...{ mutation: 'withdrawReprice', label: 'Withdraw an announced price', tells: 'servers promised' },
        of: ({ code }) => ({ code }),
      },
      {
        mutation: 'updateTier',
        label: 'Change',
        of: ({ code, version, name, position, trafficTb, portMbps, extraTrafficTbUsd, slowMbps, deliveryHours }) => ({
          ...{ code, version },
          input: { name, position, trafficTb, portMbps, extraTrafficTbUsd, slowMbps, deliveryHours },
        }),
      },
      { mutation: 'offerTier', label: 'Offer', of: seen, when: is('offered', false) },
      { mutation: 'withdrawTier', label: 'Withdraw', of: seen, when: is('offered', true) },
    ],
    empty: 'No tier yet. Add what customers can order, with its price.',
  },
  {
    ...{ path: 'stock', group: 'Catalog', title: 'Stock', list: 'stock', key: 'serviceCode region' },
    filters: ['region'],
    fields: 'serviceCode region total claimed free',
    columns: [
      { field: 'serviceCode', title: 'Tier' },
      { field: 'region', title: 'Region' },
      { field: 'claimed', title: 'Sold', as: 'number' },
      { field: 'free', title: 'Free', as: 'number' },
      { field: 'total', title: 'Limit', as: 'number', wide: true },
    ],
    actions: [{ mutation: 'setStock', label: 'Set a limit', of: () => ({ seen: 0 }) }],
    rowActions: [
      {
        mutation: 'setStock',
        label: 'Set the limit',
        of: ({ region, serviceCode, total }) => ({ region, serviceCode, seen: total }),
        first: ({ total }) => ({ total }),
      },
    ],
    empty: 'No region has a limit for a tier yet. Set how many machines it sells.',
  },
  {
    ...{ path: 'bonuses', group: 'Catalog', title: 'Bonuses', list: 'bonusTiers', key: 'minUsd' },
    fields: 'minUsd bonusPercent',
    columns: [
      { field: 'minUsd', title: 'From', as: 'number' },
      { field: 'bonusPercent', title: 'Percent', as: 'number' },
    ],
    actions: [{ mutation: 'setBonusTiers', label: 'Set the bonuses' }],
    empty: 'No top-up earns a bonus.',
  },
  {
    ...{ path: 'images', group: 'Catalog', title: 'Systems', list: 'images', key: 'code' },
    fields: 'code name family version offered deprecatedAt',
    columns: [
      { field: 'name', title: 'System' },
      { field: 'code', title: 'Code', as: 'code' },
      { field: 'offered', title: 'Offered' },
      { field: 'deprecatedAt', title: 'Deprecated', wide: true },
    ],
    actions: [{ mutation: 'addImage', label: 'Add a system' }],
    rowActions: [
      { mutation: 'offerImage', label: 'Offer', of: ({ code }) => ({ code }), when: is('offered', false) },
      { mutation: 'retireImage', label: 'Retire', of: ({ code }) => ({ code }), when: is('offered', true) },
    ],
    empty: 'No system is known.',
  },
  {
    ...{ path: 'engine-images', group: 'Catalog', title: 'Images on engines', list: 'engineImages' },
    key: 'code engine virtualMachine',
    fields: `code engine state virtualMachine url server serverAlias sha256 fingerprint trouble troubleAt updatedAt`,
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'code', title: 'System', as: 'code' },
      { field: 'engine', title: 'Engine' },
      { field: 'trouble', title: 'Trouble' },
    ],
    actions: [{ mutation: 'importImage', label: 'Import an image', suggest: { code: 'images { code }' } }],
    rowActions: [
      { mutation: 'refreshImage', label: 'Refresh', of: imageKey },
      { mutation: 'withdrawImage', label: 'Withdraw', of: imageKey, destroys: true },
    ],
    empty: 'The service has imported no image. Engines may still have images of their own.',
  },
];

/** The later of two operators hears of the change of the earlier one. */
function seen({ code, version }: Row): Row {
  return { code, version };
}
function imageKey({ code, engine, virtualMachine }: Row): Row {
  return { input: { code, engine, virtualMachine } };
}
