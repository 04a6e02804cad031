/** The operator's hosts. Secrets of their controllers go in, and never out. */
import type { Host } from '../../entities/servers/host.ts';
import {
  addHost,
  BMC_PROTOCOLS,
  FIRMWARES,
  fingerprintOf,
  HOST_STATES,
  listHosts,
  removeHost,
  setHostState,
  updateHost,
} from '../../resolvers/servers/hosts.ts';
import { builder } from '../builder.ts';
import { ServerKind } from './servers.ts';

const BmcProtocol = builder.enumType('BmcProtocol', {
  description: 'How a management controller is spoken to.',
  values: BMC_PROTOCOLS,
});
const Firmware = builder.enumType('Firmware', { description: 'How a box starts.', values: FIRMWARES });

const BmcType = builder.objectRef<Host>('Bmc').implement({
  description: 'How a management controller is reached.',
  fields: (t) => ({
    protocol: t.field({ type: BmcProtocol, resolve: ({ bmcProtocol }) => bmcProtocol! }),
    address: t.string({ resolve: ({ bmcAddress }) => bmcAddress! }),
    certificateSha256: t.string({
      nullable: true,
      description: 'Of the certificate that vouches for it. Without one, the public authorities do.',
      resolve: (host) => fingerprintOf(host),
    }),
  }),
});

const BmcInput = builder.inputType('BmcInput', {
  fields: (t) => ({
    protocol: t.field({ type: BmcProtocol, required: true }),
    address: t.field({
      type: 'Line',
      required: true,
      description: 'IPMI: a name or an IPv4 address, with a port where it is not 623. Redfish: https://10.1.0.12.',
    }),
    user: t.field({ type: 'Line', required: true }),
    password: t.field({ type: 'Line', required: true, description: 'Kept sealed, and never shown.' }),
    certificate: t.field({
      type: 'Prose',
      description:
        'PEM of the certificate of the controller itself (Redfish). By default public authorities vouch for it.',
    }),
  }),
});

type Fields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
const bareMetalInput = (t: Fields) => ({
  bmc: t.field({ type: BmcInput, description: 'Of a dedicated server; always all of it.' }),
  mac: t.field({ type: 'Mac', description: 'Of the interface that a dedicated server boots from.' }),
  disk: t.field({
    type: 'BlockDevice',
    description: 'The device of a dedicated server that systems go to, and that is wiped.',
  }),
  firmware: t.field({ type: Firmware, description: 'Default: what the controller takes for it.' }),
});

const HostState = builder.enumType('HostState', {
  description: 'Only active hosts get machines. Draining: by your word. Offline: by that of its engine.',
  values: HOST_STATES,
});
const HostType = builder.objectRef<Host>('Host').implement({
  description: 'A host, what it has, and how much of that machines have claimed.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'As its engine calls it.' }),
    region: t.exposeString('regionCode'),
    kind: t.expose('kind', { type: ServerKind }),
    engine: t.exposeString('driver'),
    state: t.expose('state', { type: HostState }),
    vcpus: t.exposeInt('vcpus'),
    memoryMb: t.exposeInt('memoryMb'),
    diskGb: t.exposeInt('diskGb'),
    vcpuOvercommit: t.exposeFloat('vcpuOvercommit', { description: 'How often each vCPU is sold.' }),
    claimedVcpus: t.exposeInt('claimedVcpus'),
    claimedMemoryMb: t.exposeInt('claimedMemoryMb'),
    claimedDiskGb: t.exposeInt('claimedDiskGb'),
    machines: t.exposeInt('machines'),
    serviceCode: t.exposeString('serviceCode', {
      nullable: true,
      description: 'The tier that a dedicated server is sold as.',
    }),
    bmc: t.field({ type: BmcType, nullable: true, resolve: (host) => (host.bmcProtocol ? host : null) }),
    mac: t.exposeString('mac', { nullable: true }),
    disk: t.exposeString('disk', { nullable: true }),
    firmware: t.expose('firmware', { type: Firmware, nullable: true }),
  }),
});

const sizeOf = (t: Fields) => ({
  vcpus: t.field({ type: 'Amount' }),
  memoryMb: t.field({ type: 'Amount' }),
  diskGb: t.field({ type: 'Amount' }),
  vcpuOvercommit: t.field({ type: 'Overcommit', description: 'How often each vCPU is sold. By default once.' }),
  ...bareMetalInput(t),
});
const AddHostInput = builder.inputType('AddHostInput', {
  fields: (t) => ({
    name: t.field({ type: 'HostName', required: true, description: 'As its engine calls it.' }),
    region: t.field({ type: 'Code', required: true, description: 'The code of a bastion.' }),
    kind: t.field({ type: ServerKind, required: true }),
    serviceCode: t.field({ type: 'Code', description: 'The tier that a dedicated server is sold as.' }),
    ...sizeOf(t),
  }),
});
const UpdateHostInput = builder.inputType('UpdateHostInput', { fields: sizeOf });

builder.queryFields((t) => ({
  hosts: t.field({
    type: [HostType],
    scope: 'operator',
    description: 'The hosts and their usage.',
    args: { region: t.arg({ type: 'Code', description: 'Of that bastion only.' }) },
    resolve: (_, { region }, context) => listHosts(context, region),
  }),
}));

const name = { type: 'HostName', required: true, description: 'The host.' } as const;
builder.mutationFields((t) => ({
  addHost: t.field({
    type: HostType,
    scope: 'operator',
    description: 'Adds a host, which gets machines from then on.',
    args: { input: t.arg({ type: AddHostInput, required: true }) },
    resolve: (_, { input }, context) => addHost(context, input),
  }),
  updateHost: t.field({
    type: HostType,
    scope: 'operator',
    description: 'Changes what a host has, not below what is claimed. What is not told stays.',
    args: { name: t.arg(name), input: t.arg({ type: UpdateHostInput, required: true }) },
    resolve: (_, args, context) => updateHost(context, args.name, args.input),
  }),
  drainHost: t.field({
    type: HostType,
    scope: 'operator',
    description: 'It gets no new machines; those that it has stay.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => setHostState(context, args.name, 'DRAINING'),
  }),
  activateHost: t.field({
    type: HostType,
    scope: 'operator',
    description: 'It gets machines again.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => setHostState(context, args.name, 'ACTIVE'),
  }),
  removeHost: t.field({
    type: HostType,
    scope: 'operator',
    description: 'Removes a host that holds no machines.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => removeHost(context, args.name),
  }),
}));
