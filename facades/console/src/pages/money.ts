/** The pages about money. */
import type { Row } from '../api.ts';
import { usd } from '../values.ts';
import { byId, is, type Page } from './page.ts';

/** The service refuses a decision about a payment that has another state meanwhile. */
const asSeen = ({ id, status }: Row): Row => ({ id, status });
const isLost = ({ status, missingSince }: Row): boolean =>
  status === 'UNMATCHED' || status === 'REVERSED' || missingSince !== null;

/** A payout before it leaves the hands of the operator. */
export const payoutInWords = ({ amountUsd, coin, address, accountId }: Row, { email }: Row): string =>
  `This takes ${usd(Number(amountUsd))} from ${email ?? accountId}, and sends it as ${coin} to ${address}.`;

const series = (title: string, field: string) => ({ title, value: (row: Row) => Number(row[field]) });
/** The amount of a row if it is of one of the kinds. */
const ofKinds =
  (field: string, ...kinds: string[]) =>
  (row: Row) =>
    kinds.includes(String(row.kind)) ? Number(row[field]) : 0;

export const MONEY: readonly Page[] = [
  {
    ...{ path: 'payments', group: 'Money', title: 'Payments', list: 'payments', key: 'id' },
    filters: ['status', 'orderNumber'],
    fields: `id status mode coin network units creditedUsd accountId orderNumber txId position address height confirmations
      seenAt creditedAt finalAt missingSince returnTxId key`,
    columns: [
      { field: 'status', title: 'State', as: 'state' },
      { field: 'coin', title: 'Coin' },
      { field: 'creditedUsd', title: 'Credited', as: 'number' },
      { field: 'accountId', title: 'Account', as: 'code', wide: true },
      { field: 'txId', title: 'Transaction', as: 'code', wide: true },
      { field: 'seenAt', title: 'Seen', as: 'age' },
    ],
    actions: [{ mutation: 'creditTransaction', label: 'Credit a transaction' }],
    rowActions: [
      { mutation: 'assignPayment', label: 'Assign', of: asSeen, when: is('status', 'UNMATCHED') },
      {
        ...{ mutation: 'requestReturn', label: 'Return the coins' },
        of: ({ id }) => ({ paymentId: id }),
        when: is('status', 'UNMATCHED'),
      },
      { mutation: 'returnPayment', label: 'Note a return', of: asSeen, when: is('status', 'UNMATCHED') },
      { mutation: 'writeOffPayment', label: 'Write off', of: asSeen, when: isLost, destroys: true },
    ],
    empty: 'No payment yet. Each coin that a chain or a processor reports appears here.',
  },
  {
    ...{ path: 'payouts', group: 'Money', title: 'Payouts', list: 'payouts', key: 'id', filters: ['status'] },
    fields:
      'id status coin network units amountUsd address isSigned accountId paymentId reason source txId key createdAt',
    columns: [
      { field: 'status', title: 'State', as: 'state' },
      { field: 'amountUsd', title: 'Amount', as: 'number' },
      { field: 'coin', title: 'Coin' },
      { field: 'accountId', title: 'Account', as: 'code', wide: true },
      { field: 'address', title: 'Address', as: 'code', wide: true },
      { field: 'createdAt', title: 'Age', as: 'age' },
    ],
    actions: [{ mutation: 'requestPayout', label: 'Request a payout', asks: payoutInWords }],
    rowActions: [
      { mutation: 'cancelPayout', label: 'Cancel', of: byId, when: is('status', 'REQUESTED', 'EXPORTED') },
      { mutation: 'finishPayout', label: 'Finish', of: byId, when: is('status', 'BROADCAST') },
    ],
    empty: 'No payout. A payout returns the coins of a customer, and `npm run payouts` exports what to sign.',
  },
  {
    ...{ path: 'proposals', group: 'Money', title: 'Proposals', list: 'proposals', key: 'id', filters: ['state'] },
    fields:
      'id state kind amountUsd accountId reason coin address source signature paymentId key proposer createdAt expiresAt decider decidedAt',
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'amountUsd', title: 'Amount', as: 'number' },
      { field: 'kind', title: 'Kind' },
      { field: 'proposer', title: 'By' },
      { field: 'accountId', title: 'Account', as: 'code', wide: true },
      { field: 'reason', title: 'Reason', wide: true },
      { field: 'expiresAt', title: 'Until', wide: true },
    ],
    rowActions: [
      { mutation: 'approveProposal', label: 'Approve', of: byId, when: is('state', 'OPEN'), destroys: true },
      { mutation: 'refuseProposal', label: 'Refuse', of: byId, when: is('state', 'OPEN') },
    ],
    empty: 'No proposal. A sum above OPERATOR_LIMIT_USD waits here for another operator.',
  },
  {
    ...{ path: 'gateways', group: 'Money', title: 'Gateways', list: 'gateways', key: 'name' },
    fields: 'name reachable simulated coins warning',
    columns: [
      { field: 'name', title: 'Gateway' },
      { field: 'reachable', title: 'Reachable' },
      { field: 'coins', title: 'Coins', wide: true },
      { field: 'warning', title: 'Warning' },
    ],
    empty: 'No gateway is configured. See PAYMENTS_FILE in the documentation.',
  },
  {
    ...{ path: 'rates', group: 'Money', title: 'Coins and rates', list: 'rates', key: 'coin' },
    fields: 'coin offered rateUsd sources { name observedAt rateUsd }',
    columns: [
      { field: 'coin', title: 'Coin' },
      { field: 'offered', title: 'Open' },
      { field: 'rateUsd', title: 'Rate', as: 'number' },
    ],
    rowActions: [
      { mutation: 'updateCoin', label: 'Open or close', of: ({ coin, offered }) => ({ code: coin, seen: offered }) },
    ],
    empty: 'No coin has a rate yet.',
  },
  {
    ...{
      path: 'sales',
      group: 'Money',
      title: 'Sales',
      list: 'sales',
      key: 'region serviceCode',
      filters: ['from', 'to'],
    },
    fields: 'region serviceCode servers monthlyUsd averageMonthUsd ordered deleted churnPercent earnedUsd refundedUsd',
    columns: [
      { field: 'serviceCode', title: 'Tier' },
      { field: 'region', title: 'Region' },
      { field: 'servers', title: 'Servers', as: 'number' },
      { field: 'monthlyUsd', title: 'A month', as: 'number' },
      { field: 'ordered', title: 'Ordered', as: 'number', wide: true },
      { field: 'deleted', title: 'Deleted', as: 'number', wide: true },
      { field: 'churnPercent', title: 'Churn %', as: 'number', wide: true },
      { field: 'earnedUsd', title: 'Earned', as: 'number', wide: true },
      { field: 'refundedUsd', title: 'Refunded', as: 'number', wide: true },
    ],
    plot: {
      title: 'Earned and refunded money of each tier in each region',
      name: ({ serviceCode, region }) => `${serviceCode} ${region}`,
      series: [series('Earned', 'earnedUsd'), series('Refunded', 'refundedUsd')],
      unit: 'USD',
    },
    empty: 'No server was sold yet.',
  },
  {
    ...{ path: 'income', group: 'Money', title: 'Income', list: 'income', key: 'coin', filters: ['from', 'to'] },
    fields: 'coin payments creditedUsd paidOutUsd',
    columns: [
      { field: 'coin', title: 'Coin' },
      { field: 'payments', title: 'Payments', as: 'number' },
      { field: 'creditedUsd', title: 'Credited', as: 'number' },
      { field: 'paidOutUsd', title: 'Paid out', as: 'number', wide: true },
    ],
    plot: {
      title: 'Payments of each coin, and the part that payouts sent back',
      name: ({ coin }) => String(coin),
      series: [series('Credited', 'creditedUsd'), series('Paid out', 'paidOutUsd')],
      unit: 'USD',
    },
    empty: 'No payment came in this range.',
  },
  {
    ...{ path: 'daily-totals', group: 'Money', title: 'Daily totals', list: 'dailyTotals', key: 'day kind' },
    filters: ['days'],
    fields: 'day kind transfers creditedUsd debitedUsd',
    columns: [
      { field: 'day', title: 'Day', as: 'day' },
      { field: 'kind', title: 'Kind' },
      { field: 'transfers', title: 'Transfers', as: 'number', wide: true },
      { field: 'creditedUsd', title: 'Credited', as: 'number' },
      { field: 'debitedUsd', title: 'Debited', as: 'number' },
    ],
    actions: [
      { mutation: 'adjustBalance', label: 'Adjust a balance' },
      { mutation: 'recordMovement', label: 'Record a movement' },
      { mutation: 'closeMonth', label: 'Close a month', destroys: true },
    ],
    plot: {
      title: 'Top-ups, renewals with orders, and refunds of each day',
      name: ({ day }) => String(day).slice(0, 10),
      series: [
        { title: 'Top-ups', value: ofKinds('creditedUsd', 'topup') },
        { title: 'Orders and renewals', value: ofKinds('debitedUsd', 'hold', 'renewal') },
        { title: 'Refunds', value: ofKinds('creditedUsd', 'refund', 'release') },
      ],
      unit: 'USD',
      isInOrder: true,
    },
    empty: 'The books are empty.',
  },
];
