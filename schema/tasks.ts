/** The work that is left to do, for the operator. */
import type { Task } from '../entities/tasks/task.ts';
import { cancelTask, listTasks, retryTask, WORK_STATES } from '../resolvers/tasks.ts';
import { builder } from './builder.ts';

const TaskState = builder.enumType('TaskState', {
  description: 'Dead tasks were given up.',
  values: ['READY', 'DEAD'] as const,
});
const WorkState = builder.enumType('WorkState', {
  description:
    'Stuck: given up, or its last attempt failed. Running: a worker has it. Waiting: it is not due, or next.',
  values: WORK_STATES,
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
  tasks: t.field({
    type: [TaskType],
    scope: 'operator',
    description: 'What must still be done, the dead first.',
    args: {
      limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }),
      state: t.arg({ type: WorkState, description: 'Only those.' }),
    },
    resolve: (_, { limit, state }, context) => listTasks(context, limit, state),
  }),
}));

const subject = { type: 'Line', required: true, description: 'What it is about.' } as const;
builder.mutationFields((t) => ({
  retryTask: t.field({
    type: TaskType,
    scope: 'operator',
    description: 'Has it tried again at once, with fresh attempts.',
    args: { subject: t.arg(subject) },
    resolve: (_, args, context) => retryTask(context, args.subject),
  }),
  giveUpTask: t.field({
    type: TaskType,
    scope: 'operator',
    description:
      'Gives up what is done for a server: an order is paid back, a change falls back. Where a machine is to be removed, you vouch that it is gone: its place and addresses are given to others.',
    args: { subject: t.arg(subject) },
    resolve: (_, args, context) => cancelTask(context, args.subject),
  }),
}));
