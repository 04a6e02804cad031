/** The proposals of operators: sums above their limit, which another operator approves or refuses. */
import { Not } from 'typeorm';
import { find } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../entities/errors.ts';
import { expression, transition } from '../../entities/history/transition.ts';
import { isId } from '../../entities/ids.ts';
import { lockOperator } from '../../entities/payments/ledger.ts';
import {
  FIND_NEW_POWER,
  IS_PROPOSAL_OPEN,
  PROPOSAL_LIFECYCLE,
  type PROPOSAL_STATES,
  Proposal,
} from '../../entities/proposal.ts';
import { requireOpen } from '../accounts/account.ts';
import { FIRST_OWNER } from '../accounts/auth/credential.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { adjust } from './adjustments.ts';
import { recordProposal } from './operator-limit.ts';
import { preparedGiveBack, preparedWriteOff } from './payments.ts';
import { payOut, preparedRefund, preparedReturn } from './payouts.ts';

export { PROPOSAL_KINDS, PROPOSAL_STATES } from '../../entities/proposal.ts';
export type ShownState = (typeof PROPOSAL_STATES)[number];

/** Lists the proposals of all operators, newest first. */
export const findProposals = (
  context: Context,
  page: PageRequest,
  state: ShownState | null | undefined,
): Promise<Page<Proposal>> =>
  pageOfAccount(context, Proposal, page, {
    state: state ?? Not('WITHIN_LIMIT'),
  });

/** Checks a proposal anew, and returns the work that moves its sum. @throws ApiError as the proposed request does */
async function workOf(context: Context, proposal: Proposal): Promise<(tx: Transaction) => Promise<unknown>> {
  const { kind, amountMicros, coin, address, paymentId, returnTxId, reason, paymentStatus: status } = proposal;
  if (kind === 'ADJUSTMENT') return (tx) => adjust(tx, context, proposal);
  if (kind === 'WRITE_OFF') return (await preparedWriteOff(context, paymentId!, reason, status)).work;
  if (returnTxId !== null) return (await preparedGiveBack(context, paymentId!, { status, reason, returnTxId })).work;
  const given = { ...proposal, address: address! };
  const requested =
    kind === 'PAYOUT'
      ? await preparedRefund(context, { ...given, coin: coin!, amountUsd: -amountMicros })
      : await preparedReturn(context, { ...given, paymentId: paymentId! });
  return (tx) => payOut(tx, context, requested);
}

/**
 * Moves the sum of a proposal in the same transaction. A payout has the rate of this moment.
 * @throws ApiError not_found, validation_failed if it does not wait, insufficient_scope, or as the request does
 */
export async function approveProposal(context: Context, id: string): Promise<Proposal> {
  const proposal = await proposalOf(context, id);
  if (proposal.state !== 'OPEN') throw decided(proposal);
  if (proposal.proposerId === context.viewer?.credentialId)
    throw new ApiError('insufficient_scope', 'You proposed it, so another operator approves it.');
  await refuseNewPower(context, proposal);
  const work = await workOf(context, proposal);
  return decide(context, proposal, 'APPROVED', work);
}

/** An owner could otherwise make a second self, and propose or approve with it at once. @throws ApiError insufficient_scope */
async function refuseNewPower({ db, viewer }: Context, { proposerId, proposerName }: Proposal): Promise<void> {
  const approverId = viewer!.credentialId;
  if (approverId !== FIRST_OWNER.credentialId && (await FIND_NEW_POWER.first(db, [proposerId])))
    throw new ApiError(
      'insufficient_scope',
      `An owner added or changed ${proposerName} in the last days. Only the token in DATA_DIR approves what a new operator proposes.`,
    );
  const given = await FIND_NEW_POWER.first(db, [approverId]);
  if (given)
    throw new ApiError(
      'insufficient_scope',
      `An owner added or changed you at ${given.at.toISOString()}. You approve from ${given.until.toISOString()} on. Another operator may do it now.`,
    );
}

/** Ends a proposal without a move. The operator who proposed it may do that, too. @throws ApiError as `approveProposal` does */
export const refuseProposal = async (context: Context, id: string): Promise<Proposal> =>
  decide(context, await proposalOf(context, id), 'REFUSED', async () => {});

const proposalOf = async ({ db }: Context, id: string): Promise<Proposal> =>
  found(isId('prop', id) && (await find(db, Proposal, { id })));

const decided = ({ state }: Proposal) =>
  refuse('id', 'wrong_state', `The proposal is ${state === 'OPEN' ? 'EXPIRED' : state}, and waits no more.`);

const decide = (
  context: Context,
  proposal: Proposal,
  to: 'APPROVED' | 'REFUSED',
  work: (tx: Transaction) => Promise<unknown>,
): Promise<Proposal> =>
  context.db.transaction(async (tx) => {
    const { id, accountId } = proposal;
    await lockOperator(tx, accountId);
    await requireOpen(tx, context);
    if (!(await IS_PROPOSAL_OPEN.first(tx, [id]))!.open) throw decided((await find(tx, Proposal, { id }))!);
    const set = { deciderName: context.viewer!.name, decidedAt: expression('now()') };
    await transition(tx, PROPOSAL_LIFECYCLE, id, to, { set });
    await recordProposal(tx, context, proposal, to);
    await work(tx);
    return found(await find(tx, Proposal, { id }));
  });
