/** What is on bare-metal hosts, and what the operator does with one that the driver does not come to an end with. */
import type { Deployment } from '../../entities/servers/deployment.ts';
import { DEPLOYMENT_STATES, declareWiped, listDeployments, retireHost } from '../../resolvers/servers/deployments.ts';
import { builder } from '../builder.ts';

const DeploymentState = builder.enumType('DeploymentState', {
  description:
    'Waiting: nothing was given to the box. Installing, installed, booted: its system is on the way, on the disk, at work. Wiping, wiped: it leaves. Retired: out of service with whatever is on it.',
  values: DEPLOYMENT_STATES,
});
const DeploymentType = builder.objectRef<Deployment>('Deployment').implement({
  description: 'A machine on a box. A box that has one is given to nobody else.',
  fields: (t) => ({
    box: t.exposeString('box', { description: 'The name of its host.' }),
    orderNumber: t.exposeString('orderNumber'),
    generation: t.exposeInt('generation', { description: 'Which machine of the order.' }),
    state: t.expose('state', { type: DeploymentState }),
    note: t.exposeString('note', { nullable: true, description: 'Why you retired the box, or declared it wiped.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
});

builder.queryFields((t) => ({
  deployments: t.field({
    type: [DeploymentType],
    scope: 'operator',
    description: 'The boxes that are not free, the longest unchanged first.',
    args: { limit: t.arg({ type: 'PageLimit', required: true, defaultValue: 50, description: 'How many.' }) },
    resolve: (_, { limit }, context) => listDeployments(context, limit),
  }),
}));

const name = { type: 'HostName', required: true, description: 'The box.' } as const;
const reason = { type: 'Line', required: true, description: 'For the audit log.' } as const;
builder.mutationFields((t) => ({
  declareWiped: t.field({
    type: DeploymentType,
    scope: 'operator',
    description:
      'You vouch that nothing is left on the disks of a box that does not come to the end of its wipe, or that was retired: ' +
      'they were wiped by hand, or replaced. The box is drained; activate it to have it sold again.',
    args: { name: t.arg(name), reason: t.arg(reason) },
    resolve: (_, args, context) => declareWiped(context, args.name, args.reason),
  }),
  retireBox: t.field({
    type: DeploymentType,
    scope: 'operator',
    description:
      'Takes a box that does not come to the end of its wipe out of service, with whatever is on its disks. You vouch that ' +
      'it is off and stays off: its server counts as gone, and its addresses are given to others. The box is not, until it is declared wiped.',
    args: { name: t.arg(name), reason: t.arg(reason) },
    resolve: (_, args, context) => retireHost(context, args.name, args.reason),
  }),
}));
