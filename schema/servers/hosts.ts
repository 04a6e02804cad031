/** The operator's hosts. Their fields never show secrets of controllers. */
import type { Host } from '../../entities/servers/host.ts';
import {
  addHost,
  BMC_PROTOCOLS,
  evacuateHost,
  FIRMWARES,
  HOST_STATES,
  listHosts,
  removeHost,
  setHostState,
  sha256Of,
  updateHost,
} from '../../resolvers/servers/hosts.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { ServerKind } from './servers.ts';

const BmcProtocol = enumType('BmcProtocol', 'The protocol of a management controller.', BMC_PROTOCOLS);
const Firmware = enumType('Firmware', 'The firmware of a box.', FIRMWARES);

const BmcType = objectType<Host>('Bmc', 'The access to a management controller.', (t) => ({
  protocol: t.field({ type: BmcProtocol, resolve: ({ bmcProtocol }) => bmcProtocol! }),
  address: t.string({ resolve: ({ bmcAddress }) => bmcAddress! }),
  certificateSha256: t.string({
    nullable: true,
    description: 'The SHA-256 of its certificate. Null: a public authority vouches for it.',
    resolve: ({ bmcCertificate }) => sha256Of(bmcCertificate),
  }),
}));

const BmcInput = inputType('BmcInput', (t) => ({
  protocol: t.field({ type: BmcProtocol, required: true }),
  address: t.field({
    type: 'Line',
    required: true,
    description: 'IPMI: a name or an IPv4 address, with a port unless it is 623. Redfish: https://10.1.0.12.',
  }),
  user: t.field({ type: 'Line', required: true }),
  password: t.field({ type: 'Line', required: true, description: 'Stored sealed, and never shown.' }),
  certificate: t.field({
    type: 'Prose',
    description: 'PEM of the certificate of the controller (Redfish). Default: a public authority vouches for it.',
  }),
}));

type Fields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
const bareMetalInput = (t: Fields) => ({
  bmc: t.field({ type: BmcInput, description: 'DEDICATED only: the whole access to the controller.' }),
  mac: t.field({
    type: 'Mac',
    description: 'DEDICATED only: the MAC address of the interface that boots from the network.',
  }),
  disks: t.field({
    type: ['DiskName'],
    description: 'DEDICATED only: all disks of the host. The first gets the system, and the driver wipes all of them.',
  }),
  firmware: t.field({ type: Firmware, description: 'Default: the present setting of the controller.' }),
  bootNetworkIsolated: t.boolean({
    description:
      'DEDICATED only: you vouch that no machine of a customer reaches the network that the host boots from. IPMI needs it. ' +
      'Default: Redfish boots virtual media instead.',
  }),
});

const HostState = enumType(
  'HostState',
  'Only active hosts get machines. The operator drains or evacuates a host; its engine reports it offline.',
  HOST_STATES,
);
const HostType = objectType<Host>('Host', 'A host, its capacity, and the part that machines have claimed.', (t) => ({
  name: t.exposeString('name', { description: 'The name that its engine uses.' }),
  region: t.exposeString('regionCode'),
  kind: t.expose('kind', { type: ServerKind }),
  engine: t.exposeString('driver'),
  state: t.expose('state', { type: HostState }),
  trouble: t.exposeString('trouble', {
    nullable: true,
    description: 'Why its engine reports it offline. Null: it does not.',
  }),
  troubleAt: t.expose('troubleAt', { type: 'DateTime', nullable: true, description: 'When it went offline.' }),
  vcpus: t.exposeInt('vcpus'),
  memoryMb: t.exposeInt('memoryMb'),
  diskGb: t.exposeInt('diskGb'),
  vcpuOvercommit: t.exposeFloat('vcpuOvercommit', { description: 'The factor by which vCPUs are oversold.' }),
  claimedVcpus: t.exposeInt('claimedVcpus'),
  claimedMemoryMb: t.exposeInt('claimedMemoryMb'),
  claimedDiskGb: t.exposeInt('claimedDiskGb'),
  machines: t.exposeInt('machines'),
  serviceCode: t.exposeString('serviceCode', {
    nullable: true,
    description: 'DEDICATED only: the tier as which the host is sold.',
  }),
  bmc: t.field({ type: BmcType, nullable: true, resolve: (host) => (host.bmcProtocol ? host : null) }),
  mac: t.exposeString('mac', { nullable: true }),
  disks: t.exposeStringList('disks', { description: 'Its disks. The first gets the system.' }),
  bootNetworkIsolated: t.exposeBoolean('bootNetworkIsolated', {
    description: 'Whether it boots from a network that no machine of a customer reaches.',
  }),
  firmware: t.expose('firmware', { type: Firmware, nullable: true }),
  revision: t.exposeInt('revision', { description: 'Grows with each change of its settings.' }),
}));

const sizeOf = (t: Fields) => ({
  vcpus: t.field({ type: 'Amount' }),
  memoryMb: t.field({ type: 'Amount' }),
  diskGb: t.field({ type: 'Amount' }),
  vcpuOvercommit: t.field({ type: 'Overcommit', description: 'The factor by which vCPUs are oversold. Default: 1.' }),
  ...bareMetalInput(t),
});
const AddHostInput = inputType('AddHostInput', (t) => ({
  name: t.field({ type: 'HostName', required: true, description: 'The name that its engine uses.' }),
  region: t.field({ type: 'Code', required: true, description: 'The code of a bastion.' }),
  kind: t.field({ type: ServerKind, required: true }),
  serviceCode: t.field({ type: 'Code', description: 'DEDICATED only: the tier as which the host is sold.' }),
  engine: t.field({ type: 'HostName', description: 'Default: the engine of the environment for that kind.' }),
  ...sizeOf(t),
}));
const UpdateHostInput = inputType('UpdateHostInput', sizeOf);

builder.queryFields((t) => ({
  hosts: t.field({
    type: [HostType],
    scope: 'operator',
    description: 'The hosts and their usage.',
    args: { region: t.arg({ type: 'Code', description: 'Only hosts of this bastion.' }) },
    resolve: (_, { region }, context) => listHosts(context, region),
  }),
}));

const name = { type: 'HostName', required: true, description: 'The host.' } as const;
/** The argument by which the later of two operators hears of the earlier change. */
export const SEEN_REVISION = {
  type: 'Amount',
  description: 'The revision that you saw. The service refuses the change of another one.',
} as const;
builder.mutationFields((t) => ({
  addHost: t.field({
    type: HostType,
    scope: 'operator',
    right: 'owner',
    description: 'Adds an active host.',
    args: { input: t.arg({ type: AddHostInput, required: true }) },
    resolve: (_, { input }, context) => addHost(context, input),
  }),
  updateHost: t.field({
    type: HostType,
    scope: 'operator',
    right: 'owner',
    description: 'Changes the given fields of a host. Its capacity must cover the claims of its machines.',
    args: { name: t.arg(name), seen: t.arg(SEEN_REVISION), input: t.arg({ type: UpdateHostInput, required: true }) },
    resolve: (_, args, context) => updateHost(context, args.name, args.input, args.seen),
  }),
  drainHost: t.field({
    type: HostType,
    scope: 'operator',
    right: 'owner',
    description: 'Drains a host: it gets no new machines, and its present ones stay.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => setHostState(context, args.name, 'DRAINING'),
  }),
  activateHost: t.field({
    type: HostType,
    scope: 'operator',
    right: 'owner',
    description: 'Activates a host, so that it gets machines again.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => setHostState(context, args.name, 'ACTIVE'),
  }),
  evacuateHost: t.field({
    type: HostType,
    scope: 'operator',
    right: 'owner',
    description:
      'Drains a host, and lets workers move its machines to the other hosts of its engine in the region. A machine that is ' +
      'on is turned off, moved, and turned on again. `activateHost` ends it. A repeated call tries failed moves again.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => evacuateHost(context, args.name),
  }),
  removeHost: t.field({
    type: HostType,
    scope: 'operator',
    right: 'owner',
    description: 'Removes a host that holds no machines.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => removeHost(context, args.name),
  }),
}));
