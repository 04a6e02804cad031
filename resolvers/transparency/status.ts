/** Health, looked at when it is asked for: the database, the workers, machines by bastion, payments, and open incidents. */
import { machinesComponent, PAYMENTS_COMPONENT } from '../../entities/transparency/health.ts';
import type { Incident } from '../../entities/transparency/transparency.ts';
import type { Context } from '../context.ts';

/**
 * Work that is due and waits longer than this makes the workers late; ten times longer, and they are out. As there is
 * periodic work, none that works is late soon, and so is each lane that is stuck.
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

/** In the vocabulary of Statuspage. Answering at all is proof that API and database work. */
export async function findStatus({ db, provisioning }: Context): Promise<ServiceStatus> {
  const [facts] = (await db.query<Facts>(FACTS)) as [Facts];
  const open = await db.query<Incident>(OPEN_INCIDENTS);
  const incidents = open.filter(({ impact }) => impact !== 'MAINTENANCE');
  const scheduledMaintenances = open.filter(({ impact }) => impact === 'MAINTENANCE');
  const simulated = (yes: boolean) => (yes ? ' (simulated)' : '');
  // What workers have found goes stale with them; then it is they who are shown as being out.
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

function workers({ lateSeconds, scheduled }: Facts): ComponentStatus {
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

/** What is measured, or what the operator has said, whichever is worse. A maintenance counts once it has begun. */
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

interface Facts {
  lateSeconds: number;
  /** Whether a worker was ever started. */
  scheduled: boolean;
  health: Record<string, ComponentStatus>;
  bastions: { code: string; name: string }[];
}
const FACTS = `
  select
    exists (select from task where subject like 'cron:%') as scheduled,
    (select coalesce(json_object_agg(component, status), '{}') from health) as health,
    coalesce((select extract(epoch from now() - min(run_at)) from task where state = 'READY' and run_at < now()), 0)::float8 as late_seconds,
    (select coalesce(json_agg(json_build_object('code', code, 'name', name) order by position), '[]') from catalog_item where kind = 'bastion' and offered) as bastions`;
const OPEN_INCIDENTS = `
  select id, name, status, impact, components, started_at, resolved_at, updates
  from incident where resolved_at is null order by id desc limit 50`;
