/** Cases of abuse. */
import type { AbuseCase } from '../../entities/accounts/abuse-case.ts';
import { CASE_STATES, closeCase, listCases, MEASURES, openCase, takeMeasure } from '../../resolvers/accounts/cases.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';

const CaseState = enumType('CaseState', 'An open case waits for its result.', CASE_STATES);
const Measure = enumType(
  'Measure',
  'Limit network: the server runs, with 1 Mbit/s until the case is closed. Power off: the customer can turn the server on again. Suspend: the account is suspended, and all its servers are off.',
  MEASURES,
);

export const CaseType = objectType<AbuseCase>('Case', 'A complaint about an address, and its end.', (t) => ({
  id: t.exposeID('id'),
  state: t.expose('state', { type: CaseState }),
  accountId: t.exposeID('accountId'),
  orderNumber: t.exposeString('orderNumber', { description: 'The server that had the address.' }),
  source: t.exposeString('source', { description: 'The author of the complaint. The customer does not see it.' }),
  address: t.exposeString('address'),
  at: t.expose('occurredAt', { type: 'DateTime' }),
  text: t.exposeString('body'),
  deadline: t.expose('deadline', { type: 'DateTime' }),
  result: t.exposeString('result', { nullable: true }),
  limitedAt: t.expose('limitedAt', {
    type: 'DateTime',
    nullable: true,
    description: 'Since then, the network of the server is limited until the case is closed.',
  }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  closedAt: t.expose('closedAt', { type: 'DateTime', nullable: true }),
}));

const OpenCaseInput = inputType('OpenCaseInput', (t) => ({
  source: t.field({ type: 'Line', required: true, description: 'The author of the complaint, for operators alone.' }),
  address: t.field({ type: 'IpAddress', required: true }),
  at: t.field({ type: 'DateTime', required: true, description: 'The time that the complaint names, in UTC.' }),
  text: t.field({
    type: 'MessageBody',
    required: true,
    description: 'The complaint. The customer gets it as a message.',
  }),
  deadline: t.field({ type: 'DateTime', required: true, description: 'The customer has until then to solve it.' }),
}));

builder.queryFields((t) => ({
  cases: t.field({
    type: [CaseType],
    scope: 'operator',
    description: 'The cases: open ones first, by their deadline, and then the latest closed ones.',
    args: {
      state: t.arg({ type: CaseState, description: 'Only cases in this state.' }),
      accountId: t.arg({ type: 'ID', description: 'Only cases of this account.' }),
      limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }),
    },
    resolve: (_, { limit, ...filter }, context) => listCases(context, filter, limit),
  }),
}));

builder.mutationFields((t) => ({
  openCase: t.field({
    type: CaseType,
    scope: 'operator',
    right: 'support',
    description:
      'Opens a case against the customer who had the address at that time. The customer gets a message. The same complaint opens one case.',
    args: { input: t.arg({ type: OpenCaseInput, required: true }) },
    resolve: (_, { input }, context) => openCase(context, input),
  }),
  takeMeasure: t.field({
    type: CaseType,
    scope: 'operator',
    right: 'support',
    description: 'Takes a measure in an open case, and tells the customer. A measure that is in force changes nothing.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The case.' }),
      measure: t.arg({ type: Measure, required: true, description: 'The measure.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, which the customer can read.' }),
    },
    resolve: (_, { id, measure, reason }, context) => takeMeasure(context, id, measure, reason),
  }),
  closeCase: t.field({
    type: CaseType,
    scope: 'operator',
    right: 'support',
    description:
      'Closes a case, and tells the customer its result. A limit of the network ends, and other measures stay in force.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The case.' }),
      result: t.arg({ type: 'Line', required: true, description: 'The result, which the customer can read.' }),
    },
    resolve: (_, { id, result }, context) => closeCase(context, id, result),
  }),
}));
