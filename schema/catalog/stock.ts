/** The stock of tiers at bastions, for the operator. */
import type { StockView } from '../../entities/servers/offers.ts';
import { listStock, setStock } from '../../resolvers/catalog/stock.ts';
import { builder, objectType } from '../builder.ts';

const StockType = objectType<StockView>('Stock', 'The stock of a tier at a bastion.', (t) => ({
  region: t.exposeString('regionCode'),
  serviceCode: t.exposeString('serviceCode'),
  total: t.exposeInt('total', { description: 'The number of machines that the operator offers.' }),
  claimed: t.exposeInt('claimed', { description: 'The number of machines that orders hold.' }),
  free: t.exposeInt('free', {
    description: 'The number of machines that customers can order. Hosts and addresses can limit it.',
  }),
}));

builder.queryFields((t) => ({
  stock: t.field({
    type: [StockType],
    scope: 'operator',
    description: 'The stock of each tier at each bastion.',
    args: { region: t.arg({ type: 'Code', description: 'Only stock of this bastion.' }) },
    resolve: (_, { region }, context) => listStock(context, region),
  }),
}));

builder.mutationFields((t) => ({
  setStock: t.field({
    type: StockType,
    scope: 'operator',
    right: 'owner',
    description: 'Sets the number of machines of a tier that a bastion offers.',
    args: {
      region: t.arg({ type: 'Code', required: true, description: 'The code of a bastion.' }),
      serviceCode: t.arg({ type: 'Code', required: true, description: 'The code of a tier.' }),
      total: t.arg({
        type: 'Amount',
        required: true,
        description:
          'At most 100,000. While customers have as many or more, no order succeeds, and their machines stay.',
      }),
      seen: t.arg({
        type: 'Amount',
        description: 'The total that you saw, 0 without one. The service refuses the change of another one.',
      }),
    },
    resolve: (_, { region, serviceCode, total, seen }, context) => setStock(context, region, serviceCode, total, seen),
  }),
}));
