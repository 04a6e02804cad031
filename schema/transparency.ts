/** Warrant canary, peering and service status; and what the operator publishes of them. */
import type { Incident, IncidentUpdate, PeeringDocument } from '../entities/transparency/transparency.ts';
import { type Component, findStatus, type ServiceStatus } from '../resolvers/transparency/status.ts';
import {
  CANARY_CODES,
  type CanaryView,
  canaryStatus,
  findCanary,
  findPeering,
  IMPACTS,
  INCIDENT_STATUSES,
  type PeeringView,
  publishCanary,
  publishIncident,
  publishPeering,
  updateIncident,
} from '../resolvers/transparency/transparency.ts';
import { builder } from './builder.ts';

const CanaryStatus = builder.enumType('CanaryStatus', {
  description: 'Expired: nothing was said in time. Triggered: something that was denied before is not denied any more.',
  values: ['VALID', 'EXPIRED', 'TRIGGERED'] as const,
});
const CanaryCode = builder.enumType('CanaryCode', {
  description: 'What has not happened (CanaryTail).',
  values: CANARY_CODES,
});
const IncidentStatusType = builder.enumType('IncidentStatus', {
  description: 'As Statuspage has them.',
  values: INCIDENT_STATUSES,
});
const Impact = builder.enumType('Impact', { description: 'As Statuspage has them.', values: IMPACTS });

const CanaryType = builder.objectRef<CanaryView>('Canary').implement({
  description:
    'A warrant canary: what its operator can still say. It is good until it expires, and only with all codes.',
  fields: (t) => ({
    version: t.exposeString('version', { description: 'Counts up; 0 if none was published.' }),
    status: t.field({ type: CanaryStatus, description: 'Decided when it is read.', resolve: canaryStatus }),
    issuedAt: t.expose('issuedAt', { type: 'DateTime' }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'After this, silence means that something is wrong.',
    }),
    codes: t.exposeStringList('codes', {
      description: 'CanaryTail codes of what has not happened; a missing one has.',
    }),
    statement: t.exposeString('statement'),
    signedText: t.exposeString('signedText', { nullable: true, description: 'Clear-signed with PGP, off-line.' }),
    fingerprint: t.exposeString('fingerprint', { nullable: true, description: 'Of the key that signs.' }),
    publicKey: t.exposeString('publicKey', { nullable: true, description: 'The key that signs.' }),
    freshness: t.exposeString('freshness', {
      nullable: true,
      description: 'What could not be known before, such as a block hash.',
    }),
    sha256: t.exposeString('sha256', { description: 'Of the signed text, or of the statement.' }),
    previousSha256: t.exposeString('previousSha256', { nullable: true, description: 'Of the canary before.' }),
  }),
});

const Exchange = builder.objectRef<PeeringDocument['exchanges'][number]>('Exchange').implement({
  description: 'A port at an internet exchange.',
  fields: (t) => ({
    name: t.exposeString('name'),
    city: t.exposeString('city'),
    country: t.exposeString('country', { description: 'ISO 3166-1 alpha-2.' }),
    speedMbps: t.exposeInt('speedMbps'),
    ipv4: t.exposeString('ipv4', { nullable: true }),
    ipv6: t.exposeString('ipv6', { nullable: true }),
    isRsPeer: t.exposeBoolean('isRsPeer', { description: 'Whether it peers with the route servers.' }),
    operational: t.exposeBoolean('operational'),
  }),
});
const Facility = builder.objectRef<PeeringDocument['facilities'][number]>('Facility').implement({
  description: 'A data centre where the network is.',
  fields: (t) => ({ name: t.exposeString('name'), city: t.exposeString('city'), country: t.exposeString('country') }),
});
const PeeringType = builder.objectRef<PeeringView>('Peering').implement({
  description: 'The network, in the words of PeeringDB.',
  fields: (t) => ({
    asn: t.exposeInt('asn', { nullable: true }),
    name: t.exposeString('name'),
    irrAsSet: t.exposeString('irrAsSet', { nullable: true }),
    policy: t.exposeString('policy'),
    policyUrl: t.exposeString('policyUrl', { nullable: true }),
    nocEmail: t.exposeString('nocEmail', { nullable: true }),
    peeringdbUrl: t.exposeString('peeringdbUrl', { nullable: true }),
    infoPrefixes4: t.exposeInt('infoPrefixes4', { nullable: true }),
    infoPrefixes6: t.exposeInt('infoPrefixes6', { nullable: true }),
    exchanges: t.expose('exchanges', { type: [Exchange] }),
    facilities: t.expose('facilities', { type: [Facility] }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
});

const StatusComponent = builder.objectRef<Component>('StatusComponent').implement({
  description: 'A part of the service. Simulated parts say so in their names.',
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name'),
    status: t.exposeString('status', {
      description: 'operational, degraded_performance, partial_outage, major_outage or under_maintenance.',
    }),
    region: t.exposeString('region', { nullable: true, description: 'The code of a bastion.' }),
  }),
});
const IncidentUpdateType = builder.objectRef<IncidentUpdate>('IncidentUpdate').implement({
  description: 'What was said of an incident, and when.',
  fields: (t) => ({
    status: t.expose('status', { type: IncidentStatusType }),
    body: t.exposeString('body'),
    createdAt: t.field({ type: 'DateTime', resolve: ({ createdAt }) => new Date(createdAt) }),
  }),
});
const IncidentType = builder.objectRef<Incident>('Incident').implement({
  description: 'Something that is wrong, or a maintenance.',
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name'),
    status: t.expose('status', { type: IncidentStatusType }),
    impact: t.expose('impact', { type: Impact }),
    components: t.exposeIDList('components', { description: 'Ids of components.' }),
    startedAt: t.expose('startedAt', { type: 'DateTime' }),
    resolvedAt: t.expose('resolvedAt', { type: 'DateTime', nullable: true }),
    updates: t.expose('updates', { type: [IncidentUpdateType] }),
  }),
});
const ServiceStatusType = builder.objectRef<ServiceStatus>('ServiceStatus').implement({
  description: 'Health, in the words of Statuspage.',
  fields: (t) => ({
    indicator: t.exposeString('indicator', { description: 'none, minor, major or critical.' }),
    description: t.exposeString('description'),
    components: t.expose('components', { type: [StatusComponent] }),
    incidents: t.expose('incidents', { type: [IncidentType], description: 'Those that are not resolved.' }),
    scheduledMaintenances: t.expose('scheduledMaintenances', {
      type: [IncidentType],
      description: 'Those that are not completed.',
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
});

const PublishCanaryInput = builder.inputType('PublishCanaryInput', {
  fields: (t) => ({
    statement: t.field({ type: 'Prose', required: true }),
    codes: t.field({ type: [CanaryCode], required: true, description: 'Those that can still be said.' }),
    expiresAt: t.field({ type: 'DateTime', description: 'By default in 35 days.' }),
    signedText: t.field({ type: 'Prose' }),
    fingerprint: t.field({ type: 'Line' }),
    publicKey: t.field({ type: 'Prose' }),
    freshness: t.field({ type: 'Line' }),
  }),
});
const IncidentReportInput = builder.inputType('PublishIncidentInput', {
  fields: (t) => ({
    name: t.field({ type: 'Line', required: true }),
    status: t.field({ type: IncidentStatusType, required: true }),
    impact: t.field({ type: Impact, required: true, description: 'MAINTENANCE makes it a scheduled maintenance.' }),
    components: t.field({ type: ['Code'], required: true, description: 'Ids of components.' }),
    startedAt: t.field({ type: 'DateTime', description: 'By default now.' }),
    body: t.field({ type: 'Prose', required: true }),
  }),
});
const UpdateIncidentInput = builder.inputType('UpdateIncidentInput', {
  fields: (t) => ({
    status: t.field({ type: IncidentStatusType, required: true }),
    body: t.field({ type: 'Prose', required: true }),
  }),
});

builder.queryFields((t) => ({
  canary: t.field({
    type: CanaryType,
    scope: 'public',
    description: 'The latest warrant canary.',
    resolve: (_, __, context) => findCanary(context),
  }),
  peering: t.field({
    type: PeeringType,
    scope: 'public',
    description: 'The network and its peerings.',
    resolve: (_, __, context) => findPeering(context),
  }),
  serviceStatus: t.field({
    type: ServiceStatusType,
    scope: 'public',
    description: 'How the service is.',
    resolve: (_, __, context) => findStatus(context),
  }),
}));

builder.mutationFields((t) => ({
  publishCanary: t.field({
    type: CanaryType,
    scope: 'operator',
    description: 'Publishes the next canary.',
    args: { input: t.arg({ type: PublishCanaryInput, required: true }) },
    resolve: (_, { input }, context) => publishCanary(context, { ...input, codes: [...input.codes] }),
  }),
  publishPeering: t.field({
    type: PeeringType,
    scope: 'operator',
    description: 'Replaces what is published of the network.',
    args: {
      document: t.arg({ type: 'PeeringDocument', required: true, description: 'As Peering, without updatedAt.' }),
    },
    resolve: (_, { document }, context) => publishPeering(context, document),
  }),
  publishIncident: t.field({
    type: IncidentType,
    scope: 'operator',
    description: 'Opens an incident, or announces a maintenance.',
    args: { input: t.arg({ type: IncidentReportInput, required: true }) },
    resolve: (_, { input }, context) => publishIncident(context, { ...input, components: [...input.components] }),
  }),
  updateIncident: t.field({
    type: IncidentType,
    scope: 'operator',
    description: 'Says more of an incident; RESOLVED and COMPLETED close it.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The incident.' }),
      input: t.arg({ type: UpdateIncidentInput, required: true }),
    },
    resolve: (_, { id, input }, context) => updateIncident(context, id, input),
  }),
}));
