/** The bonuses of larger top-ups. */
import type { BonusTier } from '../../entities/payments/bonus.ts';
import { listBonusTiers, setBonusTiers } from '../../resolvers/payments/bonus.ts';
import { builder, inputType, objectType } from '../builder.ts';
import { listOf, pageOf } from '../pages.ts';

const BonusTierType = objectType<BonusTier>(
  'BonusTier',
  'The bonus of a larger top-up. The highest tier reached counts.',
  (t) => ({
    minUsd: t.expose('minMicros', { type: 'Usd', description: 'The smallest top-up with this bonus.' }),
    bonusPercent: t.exposeFloat('bonusPercent', { description: 'The bonus, as a percentage of the whole top-up.' }),
  }),
);
const BonusTierPage = pageOf('BonusTier', BonusTierType);
const BonusTierInput = inputType('BonusTierInput', (t) => ({
  minUsd: t.field({ type: 'Usd', required: true, description: 'The smallest top-up with this bonus.' }),
  bonusPercent: t.field({ type: 'Amount', required: true, description: 'A percentage of the whole top-up.' }),
}));
const inMicros = (tiers: { minUsd: bigint; bonusPercent: number }[]): BonusTier[] =>
  tiers.map(({ minUsd, bonusPercent }) => ({ minMicros: minUsd, bonusPercent }));

builder.queryFields((t) => ({
  bonusTiers: t.field({
    type: BonusTierPage,
    scope: 'public',
    description: 'The bonuses of larger top-ups.',
    resolve: async (_, __, context) => listOf(await listBonusTiers(context)),
  }),
}));

builder.mutationFields((t) => ({
  setBonusTiers: t.field({
    type: [BonusTierType],
    scope: 'operator',
    right: 'owner',
    description: 'Replaces the bonuses for new top-ups. Opened top-ups keep theirs.',
    args: {
      tiers: t.arg({
        type: [BonusTierInput],
        required: true,
        description: 'Such as [{"minUsd": 100, "bonusPercent": 2}].',
      }),
      seen: t.arg({
        type: [BonusTierInput],
        description: 'The bonuses that you saw. The service refuses the change of other ones.',
      }),
    },
    resolve: (_, { tiers, seen }, context) => setBonusTiers(context, inMicros(tiers), seen && inMicros(seen)),
  }),
}));
