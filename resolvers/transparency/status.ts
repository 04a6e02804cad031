/** The status of the service: the database, the workers, machines by bastion, payments, and open incidents. */
import { machinesComponent, PAYMENTS_COMPONENT } from '../../entities/transparency/health.ts';
import { MEASURE_STATUS } from '../../entities/transparency/status.ts';
import { type Incident, OPEN_INCIDENTS } from '../../entities/transparency/transparency.ts';
import type { Context } from '../context.ts';

/**
 * Seconds that a due task may wait before the status calls the workers slow. After ten times as long, it calls them down.
 * Periodic tasks are always due soon, so the status notices workers that stopped.
 */
const LATE_SECONDS = 60;

export type ComponentStatus =
  | 'operational'
  | 'degraded_performance'
  | 'partial_outage'
  | 'major_outage'
  | 'under_maintenance';
export interface Component {
  id: string;
  name: string;
  status: ComponentStatus;
  region: string | null;
}
export interface ServiceStatus {
  indicator: 'none' | 'minor' | 'major' | 'critical';
  description: string;
  components: Component[];
  incidents: Incident[];
  scheduledMaintenances: Incident[];
  updatedAt: Date;
}

/** Returns the status in the vocabulary of Statuspage. The answer itself proves that the API and the database work. */
export async function findStatus({ db, provisioning }: Context): Promise<ServiceStatus> {
  const facts = (await MEASURE_STATUS.first(db))!;
  const open = await OPEN_INCIDENTS.all(db);
  const incidents = open.filter(({ impact }) => impact !== 'MAINTENANCE');
  const scheduledMaintenances = open.filter(({ impact }) => impact === 'MAINTENANCE');
  const simulated = (yes: boolean) => (yes ? ' (simulated)' : '');
  // Old measurements mean that the workers are down, which the status of the workers shows.
  const measured = (id: string) => facts.health[id] ?? 'operational';
  const found: Component[] = [
    { id: 'api', name: 'REST, MCP and GraphQL', status: 'operational', region: null },
    { id: 'database', name: 'Database', status: 'operational', region: null },
    { id: 'workers', name: 'Provisioning', status: workers(facts), region: null },
    {
      id: PAYMENTS_COMPONENT,
      name: `Payments${simulated(provisioning.simulated.payments)}`,
      status: measured(PAYMENTS_COMPONENT),
      region: null,
    },
    ...facts.bastions.map(
      ({ code, name }): Component => ({
        id: machinesComponent(code),
        name: `Machines in ${name}${simulated(provisioning.simulated.machines)}`,
        status: measured(machinesComponent(code)),
        region: code,
      }),
    ),
  ];
  const components = found.map((component) => ({ ...component, status: worst(component, open) }));
  return { ...summary(components, incidents), components, incidents, scheduledMaintenances, updatedAt: new Date() };
}

function workers({ lateSeconds, scheduled }: { lateSeconds: number; scheduled: boolean }): ComponentStatus {
  if (!scheduled || lateSeconds >= 10 * LATE_SECONDS) return 'major_outage';
  return lateSeconds < LATE_SECONDS ? 'operational' : 'degraded_performance';
}

const SEVERITY: readonly ComponentStatus[] = [
  'operational',
  'under_maintenance',
  'degraded_performance',
  'partial_outage',
  'major_outage',
];
const OF_IMPACT: Record<Incident['impact'], ComponentStatus> = {
  NONE: 'operational',
  MINOR: 'degraded_performance',
  MAJOR: 'partial_outage',
  CRITICAL: 'major_outage',
  MAINTENANCE: 'under_maintenance',
};

/** Returns the worse of the measured status and the operator's. A maintenance counts once it has begun. */
function worst({ id, status }: Component, open: Incident[]): ComponentStatus {
  const said = open
    .filter((incident) => incident.components.includes(id) && incident.status !== 'SCHEDULED')
    .map(({ impact }) => OF_IMPACT[impact]);
  return [status, ...said].reduce((a, b) => (SEVERITY.indexOf(a) >= SEVERITY.indexOf(b) ? a : b));
}

function summary(components: Component[], incidents: Incident[]): Pick<ServiceStatus, 'indicator' | 'description'> {
  const has = (status: ComponentStatus) => components.some((component) => component.status === status);
  const said = (impact: Incident['impact']) => incidents.some((incident) => incident.impact === impact);
  if (said('CRITICAL') || components.every(({ status }) => status === 'major_outage'))
    return { indicator: 'critical', description: 'The service is down.' };
  if (has('major_outage') || has('partial_outage') || said('MAJOR'))
    return { indicator: 'major', description: 'Parts of the service are down.' };
  if (has('degraded_performance') || said('MINOR'))
    return { indicator: 'minor', description: 'Parts of the service are slow.' };
  if (has('under_maintenance'))
    return { indicator: 'minor', description: 'Parts of the service are under maintenance.' };
  return { indicator: 'none', description: 'Everything works.' };
}
