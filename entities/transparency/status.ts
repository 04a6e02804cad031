/** The measurements behind the status of the service. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { AGENT_LANE, freeLane, OPEN_LANES, WEBHOOK_LANE } from '../tasks/lane.ts';
import type { Health } from './health.ts';

/** Silent machines of customers and unpaid top-ups make these lanes late, while the workers work. */
const LATE_LANES = [WEBHOOK_LANE, AGENT_LANE, ...OPEN_LANES.map(freeLane)].map((lane) => `'${lane}'`).join(', ');

/**
 * Reads whether periodic work exists, the health of components, and the offered bastions. `lateSeconds` is the delay of the
 * oldest due task in the other lanes.
 */
export const MEASURE_STATUS = statement({
  scheduled: column.boolean(),
  health: column.json<Record<string, Health['status']>>(),
  lateSeconds: column.real(),
  bastions: column.json<{ code: string; name: string }[]>(),
})`
  with recursive lanes as (
    select min(lane) as lane from task where state = 'READY'
    union all select (select min(lane) from task where state = 'READY' and task.lane > lanes.lane) from lanes where lanes.lane is not null)
  select
    exists (select from task where subject like 'cron:%') as scheduled,
    (select coalesce(json_object_agg(component, status), '{}') from health) as health,
    coalesce((select extract(epoch from now() - min(run_at)) from lanes cross join lateral (
      select run_at from task where task.lane = lanes.lane and state = 'READY' and run_at < now() order by run_at limit 1) as first
      where lanes.lane not in (${LATE_LANES})), 0)::float8 as late_seconds,
    (select coalesce(json_agg(json_build_object('code', code, 'name', name) order by position), '[]')
      from catalog_item where kind = 'bastion' and offered) as bastions`;
