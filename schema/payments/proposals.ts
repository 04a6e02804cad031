/** The proposals of operators: sums above OPERATOR_LIMIT_USD. */
import type { Proposal } from '../../entities/proposal.ts';
import {
  approveProposal,
  findProposals,
  PROPOSAL_KINDS,
  PROPOSAL_STATES,
  refuseProposal,
  type ShownState,
} from '../../resolvers/payments/proposals.ts';
import { builder, enumType, objectType } from '../builder.ts';
import { pageArgs, pageOf } from '../pages.ts';

const ProposalKind = enumType(
  'ProposalKind',
  'ADJUSTMENT of a balance, PAYOUT from a balance, RETURN of an unmatched payment, or WRITE_OFF of a payment.',
  PROPOSAL_KINDS,
);
const ProposalState = enumType(
  'ProposalState',
  'OPEN: it waits for another operator. APPROVED: its sum moved at once. An expired one moves nothing.',
  PROPOSAL_STATES,
);
const ProposalType = objectType<Proposal>('Proposal', 'A sum above the limit of one operator.', (t) => ({
  id: t.exposeID('id'),
  state: t.field({ type: ProposalState, resolve: ({ state }) => state as ShownState }),
  kind: t.expose('kind', { type: ProposalKind }),
  key: t.exposeString('key', {
    description: 'The name that the operator gave the adjustment or the payout. Otherwise the id of the proposal.',
  }),
  accountId: t.exposeID('accountId'),
  amountUsd: t.expose('amountMicros', { type: 'Usd', description: 'Negative: taken from the account.' }),
  reason: t.exposeString('reason'),
  paymentId: t.exposeID('paymentId', { nullable: true, description: 'The payment of a return or a write-off.' }),
  returnTxId: t.exposeString('returnTxId', {
    nullable: true,
    description: 'The transaction that sent a return already. Null: the approval requests a payout.',
  }),
  coin: t.exposeString('coin', { nullable: true }),
  address: t.exposeString('address', { nullable: true, description: 'The address that gets the coins.' }),
  source: t.exposeString('source', {
    nullable: true,
    description:
      'Where the proposer takes the coins from. Null: from the gateway. A wallet skips the check of final coins.',
  }),
  signature: t.exposeString('signature', { nullable: true, description: 'Proves that the customer owns the address.' }),
  proposer: t.exposeString('proposerName', { description: 'The operator who proposed it.' }),
  decider: t.exposeString('deciderName', { nullable: true, description: 'The operator who approved or refused it.' }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  expiresAt: t.expose('expiresAt', { type: 'DateTime' }),
  decidedAt: t.expose('decidedAt', { type: 'DateTime', nullable: true }),
}));

const ProposalPage = pageOf('Proposal', ProposalType);
builder.queryFields((t) => ({
  proposals: t.field({
    type: ProposalPage,
    scope: 'operator',
    description: 'The sums above the limit of one operator, newest first.',
    args: { ...pageArgs(), state: t.arg({ type: ProposalState, description: 'Only proposals in this state.' }) },
    resolve: (_, { state, ...page }, context) => findProposals(context, page, state),
  }),
}));

const id = { type: 'ID', required: true, description: 'The id of a proposal.' } as const;
builder.mutationFields((t) => ({
  approveProposal: t.field({
    type: ProposalType,
    scope: 'operator',
    right: 'billing',
    description: 'Moves the sum that another operator proposed. A payout has the rate of this moment.',
    args: { id: t.arg(id) },
    resolve: (_, args, context) => approveProposal(context, args.id),
  }),
  refuseProposal: t.field({
    type: ProposalType,
    scope: 'operator',
    right: 'billing',
    description: 'Ends a proposal without a move. You may end your own one.',
    args: { id: t.arg(id) },
    resolve: (_, args, context) => refuseProposal(context, args.id),
  }),
}));
