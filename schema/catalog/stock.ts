/** How much of each tier is offered, for the operator. */
import type { StockView } from '../../entities/servers/offers.ts';
import { listStock, setStock } from '../../resolvers/catalog/stock.ts';
import { builder } from '../builder.ts';

const StockType = builder.objectRef<StockView>('Stock').implement({
  description: 'How many machines of a tier are offered at a bastion.',
  fields: (t) => ({
    region: t.exposeString('regionCode'),
    serviceCode: t.exposeString('serviceCode'),
    total: t.exposeInt('total', { description: 'How many are offered at the most.' }),
    claimed: t.exposeInt('claimed', { description: 'How many are sold.' }),
    free: t.exposeInt('free', {
      description:
        'How many can be ordered: those that still fit on hosts, where there are, and for which there are addresses.',
    }),
  }),
});

builder.queryFields((t) => ({
  stock: t.field({
    type: [StockType],
    scope: 'operator',
    description: 'What is offered, and what of it is left.',
    args: { region: t.arg({ type: 'Code', description: 'Of that bastion only.' }) },
    resolve: (_, { region }, context) => listStock(context, region),
  }),
}));

builder.mutationFields((t) => ({
  setStock: t.field({
    type: StockType,
    scope: 'operator',
    description: 'Sets how many machines of a tier are offered at a bastion.',
    args: {
      region: t.arg({ type: 'Code', required: true, description: 'The code of a bastion.' }),
      serviceCode: t.arg({ type: 'Code', required: true, description: 'The code of a tier.' }),
      total: t.arg({ type: 'Amount', required: true, description: 'Not less than are sold, and at most 100,000.' }),
    },
    resolve: (_, { region, serviceCode, total }, context) => setStock(context, region, serviceCode, total),
  }),
}));
