/** Warrant canary, peering and service status, and how the operator publishes them. */
import type { PeeringDocument } from '../entities/transparency/transparency.ts';
import { type AuditDigest, findAuditDigest } from '../resolvers/transparency/audit-digest.ts';
import { type Component, findStatus, type ServiceStatus } from '../resolvers/transparency/status.ts';
import {
  CANARY_CODES,
  type CanaryView,
  canaryStatus,
  findCanary,
  findPeering,
  type PeeringView,
  publishCanary,
  publishPeering,
} from '../resolvers/transparency/transparency.ts';
import { builder, enumType, inputType, objectType } from './builder.ts';
import { IncidentType } from './incidents.ts';

const CanaryStatus = enumType(
  'CanaryStatus',
  'Expired: the operator published no canary in time. Triggered: the canary lacks a code.',
  ['VALID', 'EXPIRED', 'TRIGGERED'],
);
const CanaryCode = enumType(
  'CanaryCode',
  'A code of CanaryTail. It denies an event. A canary is valid only with all of them.',
  CANARY_CODES,
);

const CanaryType = objectType<CanaryView>(
  'Canary',
  'A warrant canary: a statement that its operator can still make. It is valid until it expires, and only with all codes.',
  (t) => ({
    version: t.exposeString('version', { description: 'A counter. 0 before the first canary.' }),
    status: t.field({ type: CanaryStatus, description: 'The state now.', resolve: canaryStatus }),
    issuedAt: t.expose('issuedAt', { type: 'DateTime', description: 'When the operator published it.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'Silence after this time is a warning.' }),
    codes: t.exposeStringList('codes', {
      description: 'CanaryTail codes of denied events. An event without its code has happened.',
    }),
    statement: t.exposeString('statement', { description: 'The statement, in words.' }),
    signedText: t.exposeString('signedText', {
      nullable: true,
      description: 'The operator signs it offline with PGP.',
    }),
    fingerprint: t.exposeString('fingerprint', { nullable: true, description: 'The fingerprint of the signing key.' }),
    publicKey: t.exposeString('publicKey', { nullable: true, description: 'The signing key.' }),
    freshness: t.exposeString('freshness', {
      nullable: true,
      description: 'A proof of the date, such as a block hash.',
    }),
    sha256: t.exposeString('sha256', { description: 'Digest of the signed text, or of the statement.' }),
    previousSha256: t.exposeString('previousSha256', { nullable: true, description: 'Digest of the previous canary.' }),
  }),
);

const AuditDigestType = objectType<AuditDigest>(
  'AuditDigest',
  'The daily signed digest of the audit logs and the ledger. Its keepers see whether somebody wrote them anew.',
  (t) => ({
    number: t.int({ description: 'A counter from 1 on.', resolve: ({ number }) => Number(number) }),
    signedAt: t.expose('signedAt', { type: 'DateTime' }),
    signedText: t.exposeString('signedText', {
      description:
        'It names the digest before it. A second digest covers the last link of the ledger and of each grown log.',
    }),
    sha256: t.exposeString('sha256', { description: 'Digest of the signed text.' }),
    previousSha256: t.exposeString('previousSha256', { nullable: true, description: 'The digest before it.' }),
    publicKey: t.exposeString('publicKey', { description: 'Ed25519, 32 bytes in hexadecimal.' }),
    signature: t.exposeString('signature', { description: 'Ed25519 over the signed text, in hexadecimal.' }),
  }),
);

const Exchange = objectType<PeeringDocument['exchanges'][number]>(
  'Exchange',
  'A port at an internet exchange.',
  (t) => ({
    name: t.exposeString('name', { description: 'The name of the exchange.' }),
    city: t.exposeString('city', { description: 'The city of the exchange.' }),
    country: t.exposeString('country', { description: 'ISO 3166-1 alpha-2.' }),
    speedMbps: t.exposeInt('speedMbps', { description: 'The speed of the port, in Mbit/s.' }),
    ipv4: t.exposeString('ipv4', { nullable: true, description: 'The IPv4 address of the port.' }),
    ipv6: t.exposeString('ipv6', { nullable: true, description: 'The IPv6 address of the port.' }),
    isRsPeer: t.exposeBoolean('isRsPeer', { description: 'Whether it peers with the route servers.' }),
    operational: t.exposeBoolean('operational', { description: 'Whether the port is up.' }),
  }),
);
const Facility = objectType<PeeringDocument['facilities'][number]>(
  'Facility',
  'A data centre of the network.',
  (t) => ({
    name: t.exposeString('name', { description: 'The name of the data centre.' }),
    city: t.exposeString('city', { description: 'The city of the data centre.' }),
    country: t.exposeString('country', { description: 'ISO 3166-1 alpha-2.' }),
  }),
);
const PeeringType = objectType<PeeringView>('Peering', 'The network, in the vocabulary of PeeringDB.', (t) => ({
  asn: t.exposeInt('asn', {
    nullable: true,
    description: 'The number of the autonomous system; null: the network has none.',
  }),
  name: t.exposeString('name', { description: 'The name of the network.' }),
  irrAsSet: t.exposeString('irrAsSet', {
    nullable: true,
    description: 'The set of its routes in the routing registries.',
  }),
  policy: t.exposeString('policy', { description: 'Open, Selective, Restrictive or No.' }),
  policyUrl: t.exposeString('policyUrl', { nullable: true, description: 'The page of the policy.' }),
  nocEmail: t.exposeString('nocEmail', {
    nullable: true,
    description: 'The address of the network operations centre.',
  }),
  peeringdbUrl: t.exposeString('peeringdbUrl', { nullable: true, description: 'The entry at PeeringDB.' }),
  infoPrefixes4: t.exposeInt('infoPrefixes4', {
    nullable: true,
    description: 'The IPv4 prefixes that a peer should accept.',
  }),
  infoPrefixes6: t.exposeInt('infoPrefixes6', {
    nullable: true,
    description: 'The IPv6 prefixes that a peer should accept.',
  }),
  exchanges: t.expose('exchanges', { type: [Exchange], description: 'The ports at internet exchanges.' }),
  facilities: t.expose('facilities', {
    type: [Facility],
    description: 'The data centres where the network can be reached.',
  }),
  updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
}));

const StatusComponent = objectType<Component>(
  'StatusComponent',
  'A part of the service. The names of simulated parts say so.',
  (t) => ({
    id: t.exposeID('id', { description: 'The id of the part, which incidents name.' }),
    name: t.exposeString('name', { description: 'The name of the part.' }),
    status: t.exposeString('status', {
      description: 'operational, degraded_performance, partial_outage, major_outage or under_maintenance.',
    }),
    region: t.exposeString('region', { nullable: true, description: 'The code of a bastion.' }),
  }),
);
const ServiceStatusType = objectType<ServiceStatus>(
  'ServiceStatus',
  'The status of the service, in the vocabulary of Statuspage.',
  (t) => ({
    indicator: t.exposeString('indicator', { description: 'none, minor, major or critical.' }),
    description: t.exposeString('description', { description: 'The indicator in words.' }),
    components: t.expose('components', { type: [StatusComponent], description: 'The parts of the service.' }),
    incidents: t.expose('incidents', { type: [IncidentType], description: 'Open incidents.' }),
    scheduledMaintenances: t.expose('scheduledMaintenances', {
      type: [IncidentType],
      description: 'Maintenances that are planned or in progress.',
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
);

const PublishCanaryInput = inputType('PublishCanaryInput', (t) => ({
  statement: t.field({ type: 'Prose', required: true }),
  codes: t.field({
    type: [CanaryCode],
    required: true,
    description: `The codes of events that the operator still denies. A canary is valid only with all: ${CANARY_CODES.join(', ')}.`,
  }),
  expiresAt: t.field({
    type: 'DateTime',
    description: 'In the future, and at most 35 days ahead, which is the default.',
  }),
  signedText: t.field({ type: 'Prose', description: 'It begins with -----BEGIN PGP SIGNED MESSAGE-----.' }),
  fingerprint: t.field({ type: 'Line' }),
  publicKey: t.field({ type: 'Prose', description: 'It begins with -----BEGIN PGP PUBLIC KEY BLOCK-----.' }),
  freshness: t.field({ type: 'Line' }),
}));
builder.queryFields((t) => ({
  canary: t.field({
    type: CanaryType,
    scope: 'public',
    description: 'The latest warrant canary.',
    resolve: (_, __, context) => findCanary(context),
  }),
  auditDigest: t.field({
    type: AuditDigestType,
    scope: 'public',
    errors: ['not_found'],
    description: 'A signed digest of all audit logs and of the ledger.',
    args: { number: t.arg({ type: 'DigestNumber', description: 'Default: the latest.' }) },
    resolve: (_, { number }, context) => findAuditDigest(context, number),
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
    description: 'The status of the service.',
    resolve: (_, __, context) => findStatus(context),
  }),
}));

builder.mutationFields((t) => ({
  publishCanary: t.field({
    type: CanaryType,
    scope: 'operator',
    right: 'owner',
    description: 'Publishes the next canary.',
    args: { input: t.arg({ type: PublishCanaryInput, required: true }) },
    resolve: (_, { input }, context) => publishCanary(context, { ...input, codes: [...input.codes] }),
  }),
  publishPeering: t.field({
    type: PeeringType,
    scope: 'operator',
    right: 'owner',
    description: 'Replaces the description of the network.',
    args: {
      document: t.arg({
        type: 'PeeringDocument',
        required: true,
        description: 'The fields of Peering, without updatedAt.',
      }),
    },
    resolve: (_, { document }, context) => publishPeering(context, document),
  }),
}));
