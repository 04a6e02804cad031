/** Incidents and maintenances, which the operator reports to all customers. */
import { IsNull, LessThan, Not } from 'typeorm';
import { databaseTime } from '../../entities/database/clock.ts';
import { insert, lock } from '../../entities/database/table.ts';
import { ApiError } from '../../entities/errors.ts';
import { transition } from '../../entities/history/transition.ts';
import { isId, newId } from '../../entities/ids.ts';
import {
  type Impact,
  INCIDENT_LIFECYCLE,
  Incident,
  type IncidentStatus,
} from '../../entities/transparency/transparency.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../pages.ts';
import { requireSeen } from '../seen.ts';
import { recordPublic } from './record.ts';

export { IMPACTS, INCIDENT_STATUSES } from '../../entities/transparency/transparency.ts';

/** Reads a page of incidents, newest first. @param open only open ones, or only those that are over; absent: all */
export async function listIncidents(
  { db }: Context,
  request: PageRequest,
  open?: boolean | null,
): Promise<Page<Incident>> {
  const after = afterCursor(request, { open });
  const rows = await db.manager.find(Incident, {
    where: {
      ...(open != null && { resolvedAt: open ? IsNull() : Not(IsNull()) }),
      ...(after && { id: LessThan(after) }),
    },
    order: { id: 'DESC' },
    take: request.limit + 1,
  });
  return pageFrom(rows, request, { open });
}

export interface IncidentReport {
  name: string;
  status: IncidentStatus;
  impact: Impact;
  components: string[];
  startedAt?: Date | null | undefined;
  body: string;
}

/** Opens an incident, or announces a maintenance. */
export async function publishIncident(context: Context, { body, ...report }: IncidentReport): Promise<Incident> {
  return context.db.transaction(async (tx) => {
    const now = await databaseTime(tx);
    const incident: Incident = {
      id: newId('inc'),
      ...report,
      startedAt: report.startedAt ?? now,
      resolvedAt: isOver(report.status) ? now : null,
      updates: [{ status: report.status, body, createdAt: now.toISOString() }],
    };
    await insert(tx, Incident, incident);
    await recordPublic(tx, context, incident.id, { type: 'status.changed', resource: 'incident' });
    return incident;
  });
}

/**
 * Adds an update to an incident.
 * @param seen the number of updates that the operator saw; absent: any
 * @throws ApiError not_found, validation_failed
 */
export async function updateIncident(
  context: Context,
  id: string,
  { status, body }: { status: IncidentStatus; body: string },
  seen?: number | null,
): Promise<Incident> {
  if (!isId('inc', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    const incident = found(await lock(tx, Incident, { id }));
    const change = { type: 'status.changed', subject: id } as const;
    await requireSeen(tx, { what: 'the incident', present: incident.updates.length, seen, ...change });
    const now = await databaseTime(tx);
    const set = {
      resolvedAt: isOver(status) ? (incident.resolvedAt ?? now) : null,
      updates: [...incident.updates, { status, body, createdAt: now.toISOString() }],
    };
    await transition(tx, INCIDENT_LIFECYCLE, id, status, { set });
    await recordPublic(tx, context, id, { type: 'status.changed', resource: 'incident' });
    return { ...incident, ...set, status };
  });
}
const isOver = (status: IncidentStatus) => status === 'RESOLVED' || status === 'COMPLETED';
