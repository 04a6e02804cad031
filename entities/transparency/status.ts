/** The measurements behind the status of the service. */
import { AGENT_LANE } from '../agents/agent.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { hasPaidSql } from '../payments/payer.ts';
import { PAYMENT_LANE } from '../payments/top-up.ts';
import { WEBHOOK_LANE } from '../webhooks/webhook.ts';
import type { Health } from './health.ts';

/** The lanes whose tasks call machines that customers choose. Silent ones make these lanes late, while the workers work. */
const OUTSIDE_LANES = `'${WEBHOOK_LANE}', '${AGENT_LANE}'`;

/**
 * Reads whether periodic work exists, the health of components, and the offered bastions. `lateSeconds` is the delay of the
 * oldest due task that waits for no machine of a customer. Payments of accounts that never paid wait behind the others. Many
 * are only asked for, so they do not count.
 */
export const MEASURE_STATUS = statement({
  scheduled: column.boolean(),
  health: column.json<Record<string, Health['status']>>(),
  lateSeconds: column.real(),
  bastions: column.json<{ code: string; name: string }[]>(),
})`
  select
    exists (select from task where subject like 'cron:%') as scheduled,
    (select coalesce(json_object_agg(component, status), '{}') from health) as health,
    coalesce((select extract(epoch from now() - run_at) from task
      where state = 'READY' and run_at < now() and lane not in (${OUTSIDE_LANES})
        and (lane <> '${PAYMENT_LANE}' or ${hasPaidSql('task.account_id')})
      order by run_at limit 1), 0)::float8 as late_seconds,
    (select coalesce(json_agg(json_build_object('code', code, 'name', name) order by position), '[]')
      from catalog_item where kind = 'bastion' and offered) as bastions`;
