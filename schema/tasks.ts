/** Tasks for the operator. */
import type { Task } from '../entities/tasks/task.ts';
import { cancelTask, listTasks, retryTask, WORK_STATES } from '../resolvers/tasks.ts';
import { builder, enumType, objectType } from './builder.ts';

const TaskState = enumType('TaskState', 'The worker has given up a dead task.', ['READY', 'DEAD']);
const WorkState = enumType(
  'WorkState',
  'Stuck: the task is dead, or its last attempt failed. Running: a worker has it. Waiting: it is not due, or next.',
  WORK_STATES,
);
const TaskType = objectType<Task>('Task', 'Work that a worker must still do.', (t) => ({
  subject: t.exposeString('subject', { description: 'The resource of the task, such as an order number.' }),
  process: t.exposeString('process'),
  step: t.exposeString('step'),
  state: t.expose('state', { type: TaskState }),
  attempts: t.exposeInt('attempts', { description: 'Attempts at this step.' }),
  error: t.exposeString('error', { nullable: true }),
  runAt: t.expose('runAt', { type: 'DateTime', description: 'When the task is due, or when its lease ends.' }),
  deadlineAt: t.expose('deadlineAt', { type: 'DateTime', nullable: true }),
}));

builder.queryFields((t) => ({
  tasks: t.field({
    type: [TaskType],
    scope: 'operator',
    description: 'The tasks, dead ones first.',
    args: {
      limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'The most tasks.' }),
      state: t.arg({ type: WorkState, description: 'Only tasks in this state.' }),
    },
    resolve: (_, { limit, state }, context) => listTasks(context, limit, state),
  }),
}));

const subject = {
  type: 'Line',
  required: true,
  description: 'The resource of the task, such as an order number.',
} as const;
builder.mutationFields((t) => ({
  retryTask: t.field({
    type: TaskType,
    scope: 'operator',
    right: 'support',
    description: 'Lets a worker run a task at once, with fresh attempts.',
    args: { subject: t.arg(subject) },
    resolve: (_, args, context) => retryTask(context, args.subject),
  }),
  giveUpTask: t.field({
    type: TaskType,
    scope: 'operator',
    right: 'owner',
    description:
      'Cancels the work on a server. An order is refunded, a change is undone. For a deletion, you confirm that the machine is gone: other servers get its place and addresses.',
    args: { subject: t.arg(subject) },
    resolve: (_, args, context) => cancelTask(context, args.subject),
  }),
}));
