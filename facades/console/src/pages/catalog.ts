/** The pages about the offer. */
import type { Row } from '../api.ts';
import { is, type Page } from './page.ts';

export const CATALOG: readonly Page[] = [
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
    rowActions: [
      {
        mutation: 'setStock',
        label: 'Set the limit',
        of: ({ region, serviceCode }) => ({ region, serviceCode }),
        first: ({ total }) => ({ total }),
      },
    ],
    empty: 'Nothing is on offer.',
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
    actions: [{ mutation: 'importImage', label: 'Import an image' }],
    rowActions: [
      { mutation: 'refreshImage', label: 'Refresh', of: imageKey },
      { mutation: 'withdrawImage', label: 'Withdraw', of: imageKey, destroys: true },
    ],
    empty: 'The service has imported no image. Engines may still have images of their own.',
  },
];

function imageKey({ code, engine, virtualMachine }: Row): Row {
  return { input: { code, engine, virtualMachine } };
}
