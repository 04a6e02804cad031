/** Deployments on bare-metal hosts, and how the operator overrides a driver that cannot finish one. */
import type { Deployment } from '../../entities/servers/deployment.ts';
import { DEPLOYMENT_STATES, declareWiped, listDeployments, retireHost } from '../../resolvers/servers/deployments.ts';
import { builder, enumType, objectType } from '../builder.ts';

const DeploymentState = enumType(
  'DeploymentState',
  'Waiting: the box got nothing yet. Installing, installed, booted: its system gets there. Wiping, wiped: its machine leaves. Retired: the box is out of service, and not wiped.',
  DEPLOYMENT_STATES,
);
const DeploymentType = objectType<Deployment>(
  'Deployment',
  'A machine on a box. While it is there, no other customer gets the box.',
  (t) => ({
    box: t.exposeString('box', { description: 'The name of its host.' }),
    orderNumber: t.exposeString('orderNumber'),
    generation: t.exposeInt('generation', { description: 'The number of the machine of this order.' }),
    state: t.expose('state', { type: DeploymentState }),
    report: t.exposeString('report', {
      nullable: true,
      description: 'The last news of its installer or wiper: the verified disks, or the reason why it cannot go on.',
    }),
    note: t.exposeString('note', {
      nullable: true,
      description: 'The reason why the operator retired the box, or declared it wiped.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
);

builder.queryFields((t) => ({
  deployments: t.field({
    type: [DeploymentType],
    scope: 'operator',
    description: 'The deployments, the longest unchanged first.',
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
    right: 'support',
    description:
      'Declares that the disks of a box are empty: somebody wiped or replaced them. For a box that is retired, or whose wipe ' +
      'does not finish. The box is drained; activate it to sell it again.',
    args: { name: t.arg(name), reason: t.arg(reason) },
    resolve: (_, args, context) => declareWiped(context, args.name, args.reason),
  }),
  retireBox: t.field({
    type: DeploymentType,
    scope: 'operator',
    right: 'owner',
    description:
      'Takes a box out of service if its wipe does not finish. You vouch that it is off and stays off. Its server counts as ' +
      'gone, and other customers can get its addresses. The box is not sold until you declare it wiped.',
    args: { name: t.arg(name), reason: t.arg(reason) },
    resolve: (_, args, context) => retireHost(context, args.name, args.reason),
  }),
}));
