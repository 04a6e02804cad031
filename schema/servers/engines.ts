/** The operator's engines. Their fields never show keys. */
import type { Engine, Member } from '../../entities/servers/engine.ts';
import {
  addEngine,
  ENGINE_PRODUCTS,
  ENGINE_STATES,
  listEngines,
  removeEngine,
  setEngineState,
  updateEngine,
} from '../../resolvers/servers/engines.ts';
import { sha256Of } from '../../resolvers/servers/hosts.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';
import { SEEN_REVISION } from './hosts.ts';
import { ServerKind } from './servers.ts';

const EngineState = enumType(
  'EngineState',
  'Only active engines get machines. The machines of a drained one stay.',
  ENGINE_STATES,
);
const EngineProduct = enumType('EngineProduct', 'The program of an engine, as it tells.', ENGINE_PRODUCTS);

const MemberType = objectType<Member>('Member', 'A member of an engine, as the engine told of it.', (t) => ({
  name: t.exposeString('name'),
  state: t.exposeString('state', { description: 'online, or offline: silent or evacuated.' }),
  vcpus: t.exposeInt('vcpus', { description: 'Its processors; 0 while it is not online.' }),
  memoryMb: t.exposeInt('memoryMb'),
  diskGb: t.exposeInt('diskGb', { description: 'The size of its pool.' }),
}));

const EngineType = objectType<Engine>('Engine', 'An engine, with its answers at the last look.', (t) => ({
  name: t.exposeString('name', { description: 'Engines of the environment have the name of their driver.' }),
  kinds: t.field({ type: [ServerKind], resolve: ({ kinds }) => kinds as ('VPS' | 'DEDICATED')[] }),
  region: t.exposeString('regionCode', { nullable: true, description: 'Null: its hosts can be anywhere.' }),
  state: t.expose('state', { type: EngineState }),
  simulated: t.exposeBoolean('simulated'),
  endpoints: t.stringList({
    nullable: true,
    description: 'Null: the environment of the workers configures the engine.',
    resolve: ({ connection }) => connection?.endpoints ?? null,
  }),
  project: t.string({ nullable: true, resolve: ({ connection }) => connection?.project ?? null }),
  pool: t.string({ nullable: true, resolve: ({ connection }) => connection?.pool ?? null }),
  network: t.string({ nullable: true, resolve: ({ connection }) => connection?.network ?? null }),
  serverCertificateSha256: t.string({
    nullable: true,
    description: 'The SHA-256 of the certificate that the service trusts.',
    resolve: ({ connection }) => sha256Of(connection?.serverCertificate),
  }),
  revision: t.exposeInt('revision', { description: 'Grows with each change of its settings.' }),
  product: t.expose('product', { type: EngineProduct, nullable: true }),
  version: t.exposeString('version', { nullable: true }),
  members: t.field({ type: [MemberType], resolve: ({ members }) => members }),
  images: t.exposeStringList('images', { nullable: true, description: 'The names of its images. Null: unknown.' }),
  seenAt: t.expose('seenAt', {
    type: 'DateTime',
    nullable: true,
    description:
      'When a worker last reached it. Before that, also after updateEngine, it gets no machines, and all work on them waits.',
  }),
  trouble: t.exposeString('trouble', { nullable: true, description: 'The error of the last look, if it failed.' }),
  troubleAt: t.expose('troubleAt', { type: 'DateTime', nullable: true }),
}));

type Fields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
const settings = (t: Fields) => ({
  project: t.field({ type: 'Line', description: 'Default: freehold.' }),
  pool: t.field({ type: 'Line', description: 'The storage pool of the machines. Default: default.' }),
  network: t.field({
    type: 'Line',
    description: 'A network of the engine, or a bridge of its hosts. Default: lxdbr0.',
  }),
  nameservers: t.field({ type: ['IpAddress'], description: 'The nameservers of the machines.' }),
  openMail: t.boolean({ description: 'Lets machines on the network of the engine send mail to port 25.' }),
  clientCertificate: t.field({ type: 'Prose', description: 'PEM; by https, with its key.' }),
  clientKey: t.field({ type: 'Prose', description: 'PEM. Stored sealed, and never shown.' }),
  serverCertificate: t.field({ type: 'Prose', description: 'PEM of the only certificate that the service trusts.' }),
});
const ENDPOINTS = 'unix:/path or https://host:8443: one server, or several members of one cluster.';
const AddEngineInput = inputType('AddEngineInput', (t) => ({
  name: t.field({ type: 'HostName', required: true }),
  region: t.field({ type: 'Code', required: true, description: 'The code of the bastion of its hosts.' }),
  endpoints: t.field({ type: ['Line'], required: true, description: ENDPOINTS }),
  ...settings(t),
}));
const UpdateEngineInput = inputType('UpdateEngineInput', (t) => ({
  endpoints: t.field({ type: ['Line'], description: ENDPOINTS }),
  ...settings(t),
}));

builder.queryFields((t) => ({
  engines: t.field({
    type: [EngineType],
    scope: 'operator',
    description: 'The engines, with their last answers.',
    resolve: (_, __, context) => listEngines(context),
  }),
}));

const name = { type: 'HostName', required: true, description: 'The engine.' } as const;
builder.mutationFields((t) => ({
  addEngine: t.field({
    type: EngineType,
    scope: 'operator',
    right: 'owner',
    description: 'Adds an engine for VPS. Add its hosts next. It gets machines after a worker has reached it.',
    args: { input: t.arg({ type: AddEngineInput, required: true }) },
    resolve: (_, { input }, context) => addEngine(context, input),
  }),
  updateEngine: t.field({
    type: EngineType,
    scope: 'operator',
    right: 'owner',
    description: 'Changes the given settings of an added engine. Workers follow without a restart.',
    args: { name: t.arg(name), seen: t.arg(SEEN_REVISION), input: t.arg({ type: UpdateEngineInput, required: true }) },
    resolve: (_, args, context) => updateEngine(context, args.name, args.input, args.seen),
  }),
  drainEngine: t.field({
    type: EngineType,
    scope: 'operator',
    right: 'owner',
    description: 'Drains an engine: it gets no new machines, and its present ones stay.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => setEngineState(context, args.name, 'DRAINED'),
  }),
  activateEngine: t.field({
    type: EngineType,
    scope: 'operator',
    right: 'owner',
    description: 'Activates an engine, so that it gets machines again.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => setEngineState(context, args.name, 'ACTIVE'),
  }),
  removeEngine: t.field({
    type: EngineType,
    scope: 'operator',
    right: 'owner',
    description: 'Removes an added engine that has neither hosts nor servers.',
    args: { name: t.arg(name) },
    resolve: (_, args, context) => removeEngine(context, args.name),
  }),
}));
