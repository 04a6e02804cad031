/** The operator's queue of what people have to do with machines. */
import {
  endManualJob,
  findManualJobs,
  findManualSpec,
  type MachineSpec,
  type ManualJob,
} from '../../resolvers/servers/manual-jobs.ts';
import { builder } from '../builder.ts';

const ManualAction = builder.enumType('ManualAction', {
  description: 'What is to be done with the machine.',
  values: ['CREATE', 'POWER', 'REBUILD', 'RESIZE', 'DESTROY'] as const,
});
const ManualJobState = builder.enumType('ManualJobState', {
  description: 'Only what is open waits for somebody.',
  values: ['OPEN', 'DONE', 'FAILED'] as const,
});

const ManualSpec = builder.objectRef<MachineSpec>('ManualSpec').implement({
  description: 'What is to be made.',
  fields: (t) => ({
    serviceCode: t.exposeString('serviceCode'),
    region: t.exposeString('region'),
    image: t.exposeString('image'),
    hostname: t.exposeString('hostname'),
    sshPublicKeys: t.exposeStringList('sshPublicKeys'),
    rootPassword: t.exposeString('rootPassword', { nullable: true }),
    userData: t.exposeString('userData', { nullable: true, description: 'cloud-init.' }),
    ipv4: t.string({ nullable: true, resolve: ({ network }) => network.ipv4?.address ?? null }),
    ipv6: t.string({ nullable: true, resolve: ({ network }) => network.ipv6?.address ?? null }),
    ipv6Prefix: t.string({ nullable: true, resolve: ({ network }) => network.ipv6Prefix }),
  }),
});

const ManualJobType = builder.objectRef<ManualJob>('ManualJob').implement({
  description: 'Something that has to be done by hand with a machine.',
  fields: (t) => ({
    id: t.exposeID('id'),
    orderNumber: t.exposeString('orderNumber'),
    generation: t.exposeInt('generation', { description: 'Each machine of an order that was given up has another.' }),
    action: t.expose('action', { type: ManualAction }),
    power: t.exposeString('power', { nullable: true, description: 'What POWER asks for: on, off, restart or reset.' }),
    state: t.expose('state', { type: ManualJobState }),
    note: t.exposeString('note', { nullable: true }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    closedAt: t.expose('closedAt', { type: 'DateTime', nullable: true }),
    spec: t.field({
      type: ManualSpec,
      nullable: true,
      description: 'Until the job is closed.',
      resolve: (job, _, context) => findManualSpec(context, job),
    }),
  }),
});

builder.queryFields((t) => ({
  manualJobs: t.field({
    type: [ManualJobType],
    scope: 'operator',
    description: 'What has to be done by hand, the oldest first, and after that what is closed.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }) },
    resolve: (_, { limit }, context) => findManualJobs(context, limit),
  }),
}));

builder.mutationFields((t) => ({
  completeManualJob: t.field({
    type: ManualJobType,
    scope: 'operator',
    description:
      'Says that a job is done. Of a machine that was made or turned on, it says that its SSH server was seen to answer: ' +
      'billing begins with it. Of one that is gone, that its disks are wiped: its addresses are given to others.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The job.' }),
      note: t.arg({ type: 'Line', description: 'For yourself.' }),
    },
    resolve: (_, { id, note }, context) => endManualJob(context, id, 'DONE', note ?? null),
  }),
  failManualJob: t.field({
    type: ManualJobType,
    scope: 'operator',
    description: 'Says that a job cannot be done: an order is paid back in full, a change is undone.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The job.' }),
      note: t.arg({ type: 'Line', description: 'For yourself.' }),
    },
    resolve: (_, { id, note }, context) => endManualJob(context, id, 'FAILED', note ?? null),
  }),
}));
