/** Incidents and maintenances, as the operator reports them. */
import type { Incident, IncidentUpdate } from '../entities/transparency/transparency.ts';
import {
  IMPACTS,
  INCIDENT_STATUSES,
  listIncidents,
  publishIncident,
  updateIncident,
} from '../resolvers/transparency/incidents.ts';
import { builder, enumType, inputType, objectType } from './builder.ts';
import { pageArgs, pageOf } from './pages.ts';

const IncidentStatusType = enumType('IncidentStatus', 'The vocabulary of Statuspage.', INCIDENT_STATUSES);
const Impact = enumType('Impact', 'The vocabulary of Statuspage.', IMPACTS);

const IncidentUpdateType = objectType<IncidentUpdate>('IncidentUpdate', 'A report on an incident.', (t) => ({
  status: t.expose('status', { type: IncidentStatusType, description: 'The state of the incident after this report.' }),
  body: t.exposeString('body', { description: 'The report, in words.' }),
  createdAt: t.field({ type: 'DateTime', resolve: ({ createdAt }) => new Date(createdAt) }),
}));
export const IncidentType = objectType<Incident>('Incident', 'An incident or a maintenance.', (t) => ({
  id: t.exposeID('id', { description: 'The id of the incident.' }),
  name: t.exposeString('name', { description: 'The incident in a few words.' }),
  status: t.expose('status', { type: IncidentStatusType, description: 'The state after the latest report.' }),
  impact: t.expose('impact', { type: Impact, description: 'How much customers notice.' }),
  components: t.exposeIDList('components', { description: 'The ids of components.' }),
  startedAt: t.expose('startedAt', {
    type: 'DateTime',
    description: 'When the incident began or the maintenance begins.',
  }),
  resolvedAt: t.expose('resolvedAt', {
    type: 'DateTime',
    nullable: true,
    description: 'When it ended; null: it is open.',
  }),
  updates: t.expose('updates', { type: [IncidentUpdateType], description: 'The reports, oldest first.' }),
}));
const IncidentPage = pageOf('Incident', IncidentType);

const IncidentReportInput = inputType('PublishIncidentInput', (t) => ({
  name: t.field({ type: 'Line', required: true }),
  status: t.field({ type: IncidentStatusType, required: true }),
  impact: t.field({ type: Impact, required: true, description: 'MAINTENANCE announces a scheduled maintenance.' }),
  components: t.field({ type: ['Code'], required: true, description: 'The ids of components.' }),
  startedAt: t.field({ type: 'DateTime', description: 'Default: now.' }),
  body: t.field({ type: 'Prose', required: true }),
}));
const UpdateIncidentInput = inputType('UpdateIncidentInput', (t) => ({
  status: t.field({ type: IncidentStatusType, required: true }),
  body: t.field({ type: 'Prose', required: true }),
}));

builder.queryFields((t) => ({
  incidents: t.field({
    type: IncidentPage,
    scope: 'operator',
    description: 'All incidents and maintenances, newest first. `serviceStatus` has the open ones for customers.',
    args: { ...pageArgs(), open: t.arg.boolean({ description: 'Only open ones, or only those that are over.' }) },
    resolve: (_, { open, ...page }, context) => listIncidents(context, page, open),
  }),
}));

builder.mutationFields((t) => ({
  publishIncident: t.field({
    type: IncidentType,
    scope: 'operator',
    right: 'support',
    description: 'Opens an incident, or announces a maintenance.',
    args: { input: t.arg({ type: IncidentReportInput, required: true }) },
    resolve: (_, { input }, context) => publishIncident(context, { ...input, components: [...input.components] }),
  }),
  updateIncident: t.field({
    type: IncidentType,
    scope: 'operator',
    right: 'support',
    description: 'Adds a report to an incident. RESOLVED and COMPLETED close it.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The incident.' }),
      input: t.arg({ type: UpdateIncidentInput, required: true }),
      seen: t.arg({
        type: 'Amount',
        description: 'The number of reports that you saw. The service refuses one after another report.',
      }),
    },
    resolve: (_, { id, input, seen }, context) => updateIncident(context, id, input, seen),
  }),
}));
