/** What only the operator sees. */
import type { Task } from '../entities/task.ts';
import { type Books, findBooks, listTasks } from '../resolvers/operator.ts';
import { builder } from './builder.ts';

const LedgerTotal = builder.objectRef<Books['totals'][number]>('LedgerTotal').implement({
  description: 'What a ledger account sums up to; those of customers together.',
  fields: (t) => ({ name: t.exposeString('name'), totalUsd: t.expose('micros', { type: 'Usd' }) }),
});
const BooksType = builder.objectRef<Books>('Books').implement({
  description: 'The proof that the books balance.',
  fields: (t) => ({
    balanced: t.exposeBoolean('balanced', { description: 'Whether every kept balance is the sum of its transfers.' }),
    transfers: t.exposeInt('transfers'),
    firstMismatch: t.string({
      nullable: true,
      description: 'The first account of which it is not.',
      resolve: ({ firstMismatch }) => firstMismatch?.accountId ?? null,
    }),
    totals: t.expose('totals', { type: [LedgerTotal], description: 'They sum up to nothing.' }),
  }),
});
const TaskState = builder.enumType('TaskState', {
  description: 'Dead tasks were given up.',
  values: ['READY', 'DEAD'] as const,
});
const TaskType = builder.objectRef<Task>('Task').implement({
  description: 'Work that must still be done.',
  fields: (t) => ({
    subject: t.exposeString('subject', { description: 'What it is about.' }),
    process: t.exposeString('process'),
    step: t.exposeString('step'),
    state: t.expose('state', { type: TaskState }),
    attempts: t.exposeInt('attempts', { description: 'How often this step was tried.' }),
    error: t.exposeString('error', { nullable: true }),
    runAt: t.expose('runAt', { type: 'DateTime', description: 'When it is due, or when its lease ends.' }),
    deadlineAt: t.expose('deadlineAt', { type: 'DateTime', nullable: true }),
  }),
});

builder.queryFields((t) => ({
  books: t.field({
    type: BooksType,
    scope: 'operator',
    description: 'Proves that the books balance. Reads every transfer.',
    resolve: (_, __, context) => findBooks(context),
  }),
  tasks: t.field({
    type: [TaskType],
    scope: 'operator',
    description: 'What must still be done, the dead first.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }) },
    resolve: (_, { limit }, context) => listTasks(context, limit),
  }),
}));
