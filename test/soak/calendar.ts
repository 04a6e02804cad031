/**
 * The calendar makes time pass quickly: paid months end, and suspensions become a week old. Each statement changes
 * one row. It holds one lock only, so the calendar itself cannot deadlock.
 */
import type { Database } from '../../entities/database/database.ts';
import { RENEWAL_PROCESS } from '../../provisioning/servers/billing/renew.ts';
import { cronSubject } from '../../provisioning/tasks/schedule.ts';
import type { Weighed } from './actor.ts';
import type { Chance } from './chance.ts';
import type { Measurements } from './measurements.ts';

export interface Calendar {
  name: string;
  db: Database;
  chance: Chance;
  measurements: Measurements;
}

const turn = (from: string, change: string) => async (calendar: Calendar) => {
  const { db, chance } = calendar;
  const found = await db.query<{ id: string }>(`select id from server where ${from} order by id`);
  const id = chance.pick(found)?.id;
  if (id) await db.query(`update server set ${change} where id = $1 and ${from}`, [id]);
  await renewNow(calendar);
};

/** Makes a worker look for due servers now, instead of once a minute. */
const renewNow = ({ db }: Pick<Calendar, 'db'>) =>
  db.query('update task set run_at = now() where subject = $1 and leased_by is null', [cronSubject(RENEWAL_PROCESS)]);

export const CALENDAR_OPERATIONS: Weighed<(calendar: Calendar) => Promise<void>> = [
  [9, turn(`status in ('RUNNING', 'STOPPED') and paid_until > now()`, `paid_until = now() - interval '1 second'`)],
  [1, turn(`status = 'SUSPENDED' and change is null`, `suspended_at = now() - interval '8 days'`)],
];
