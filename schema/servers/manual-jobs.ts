/** The operator's queue of manual jobs on machines. */
import {
  endManualJob,
  findManualJobs,
  findManualSpec,
  type MachineSpec,
  type ManualJob,
} from '../../resolvers/servers/manual-jobs.ts';
import { builder, enumType, objectType } from '../builder.ts';

const ManualAction = enumType('ManualAction', 'The work on the machine.', [
  'CREATE',
  'POWER',
  'REBUILD',
  'RESIZE',
  'DESTROY',
]);
const ManualJobState = enumType('ManualJobState', 'An open job waits for an operator.', ['OPEN', 'DONE', 'FAILED']);

const ManualSpec = objectType<MachineSpec>('ManualSpec', 'The specification of the machine to make.', (t) => ({
  serviceCode: t.exposeString('serviceCode'),
  region: t.exposeString('region'),
  image: t.exposeString('image'),
  hostname: t.exposeString('hostname'),
  sshPublicKeys: t.exposeStringList('sshPublicKeys'),
  rootPassword: t.exposeString('rootPassword', { nullable: true }),
  userData: t.exposeString('userData', { nullable: true, description: 'cloud-init user data.' }),
  ipv4: t.string({ nullable: true, resolve: ({ network }) => network.ipv4?.address ?? null }),
  ipv6: t.string({ nullable: true, resolve: ({ network }) => network.ipv6?.address ?? null }),
  ipv6Prefix: t.string({ nullable: true, resolve: ({ network }) => network.ipv6Prefix }),
}));

const ManualJobType = objectType<ManualJob>('ManualJob', 'Work that an operator does by hand on a machine.', (t) => ({
  id: t.exposeID('id'),
  orderNumber: t.exposeString('orderNumber'),
  generation: t.exposeInt('generation', {
    description: 'The number of the machine of this order. It grows when a machine is given up.',
  }),
  action: t.expose('action', { type: ManualAction }),
  power: t.exposeString('power', {
    nullable: true,
    description: 'The change of power (POWER): on, off, restart or reset.',
  }),
  state: t.expose('state', { type: ManualJobState }),
  note: t.exposeString('note', { nullable: true }),
  createdAt: t.expose('createdAt', { type: 'DateTime' }),
  closedAt: t.expose('closedAt', { type: 'DateTime', nullable: true }),
  spec: t.field({
    type: ManualSpec,
    nullable: true,
    description: 'Null once the job is closed.',
    resolve: (job, _, context) => findManualSpec(context, job),
  }),
}));

builder.queryFields((t) => ({
  manualJobs: t.field({
    type: [ManualJobType],
    scope: 'operator',
    right: 'support',
    description: 'Open jobs first, and the oldest of them first; then closed ones.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }) },
    resolve: (_, { limit }, context) => findManualJobs(context, limit),
  }),
}));

builder.mutationFields((t) => ({
  completeManualJob: t.field({
    type: ManualJobType,
    scope: 'operator',
    right: 'support',
    description:
      'Closes a job as done. After CREATE or POWER on, you vouch that its SSH server answers: billing begins. After ' +
      'DESTROY, you vouch that its disks are wiped: other customers can get its addresses.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The job.' }),
      note: t.arg({ type: 'Line', description: 'A note for operators.' }),
    },
    resolve: (_, { id, note }, context) => endManualJob(context, id, 'DONE', note ?? null),
  }),
  failManualJob: t.field({
    type: ManualJobType,
    scope: 'operator',
    right: 'support',
    description: 'Closes a job as failed. A failed order is refunded in full, and a failed change undone.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The job.' }),
      note: t.arg({ type: 'Line', description: 'A note for operators.' }),
    },
    resolve: (_, { id, note }, context) => endManualJob(context, id, 'FAILED', note ?? null),
  }),
}));
