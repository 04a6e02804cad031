/** Health, looked at when it is asked for: the database, the workers, machines by bastion, payments, and open incidents. */
import type { Incident } from '../entities/transparency.ts';
import type { Context } from './context.ts';

/** Work that is due and waits longer than this makes the workers late; ten times longer, and they are out. */
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

/** In the vocabulary of Statuspage. Answering at all is proof that API and database work. */
export async function findStatus({ db, provisioning }: Context): Promise<ServiceStatus> {
  const [facts] = await db.query<{ lateSeconds: number; bastions: { code: string; name: string }[] }>(FACTS);
  const open = await db.query<Incident>(OPEN_INCIDENTS);
  const incidents = open.filter(({ impact }) => impact !== 'MAINTENANCE');
  const scheduledMaintenances = open.filter(({ impact }) => impact === 'MAINTENANCE');
  const simulated = (yes: boolean) => (yes ? ' (simulated)' : '');
  const workers: ComponentStatus =
    facts!.lateSeconds < LATE_SECONDS
      ? 'operational'
      : facts!.lateSeconds < 10 * LATE_SECONDS
        ? 'degraded_performance'
        : 'major_outage';
  const found: Component[] = [
    { id: 'api', name: 'REST, MCP and GraphQL', status: 'operational', region: null },
    { id: 'database', name: 'Database', status: 'operational', region: null },
    { id: 'workers', name: 'Provisioning', status: workers, region: null },
    {
      id: 'payments',
      name: `Payments${simulated(provisioning.simulated.payments)}`,
      status: 'operational',
      region: null,
    },
    ...facts!.bastions.map(
      ({ code, name }): Component => ({
        id: `machines-${code}`,
        name: `Machines in ${name}${simulated(provisioning.simulated.machines)}`,
        status: 'operational',
        region: code,
      }),
    ),
  ];
  const components = found.map((component) => ({ ...component, status: worst(component, open) }));
  return { ...summary(components, incidents), components, incidents, scheduledMaintenances, updatedAt: new Date() };
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

/** What is measured, or what the operator has said, whichever is worse. A maintenance counts once it has begun. */
function worst({ id, status }: Component, open: Incident[]): ComponentStatus {
  const said = open
    .filter((incident) => incident.components.includes(id) && incident.status !== 'SCHEDULED')
    .map(({ impact }) => OF_IMPACT[impact]);
  return [status, ...said].reduce((a, b) => (SEVERITY.indexOf(a) >= SEVERITY.indexOf(b) ? a : b));
}

function summary(components: Component[], incidents: Incident[]): Pick<ServiceStatus, 'indicator' | 'description'> {
  const has = (status: ComponentStatus) => components.some((component) => component.status === status);
  if (
    incidents.some(({ impact }) => impact === 'CRITICAL') ||
    components.every(({ status }) => status === 'major_outage')
  ) {
    return { indicator: 'critical', description: 'The service is down.' };
  }
  if (has('major_outage') || has('partial_outage'))
    return { indicator: 'major', description: 'Parts of the service are down.' };
  if (has('degraded_performance') || incidents.some(({ impact }) => impact === 'MINOR')) {
    return { indicator: 'minor', description: 'Parts of the service are slow.' };
  }
  return { indicator: 'none', description: 'Everything works.' };
}

const FACTS = `
  select
    coalesce((select extract(epoch from now() - min(run_at)) from task where state = 'READY' and run_at < now()), 0)::float8 as "lateSeconds",
    (select coalesce(json_agg(json_build_object('code', code, 'name', name) order by position), '[]') from catalog_item where kind = 'bastion' and offered) as bastions`;
const OPEN_INCIDENTS = `
  select id, name, status, impact, components, started_at as "startedAt", resolved_at as "resolvedAt", updates
  from incident where resolved_at is null order by id desc limit 50`;
