/** The service during an outage of its database. */
import { inject } from 'vitest';
import { asSuperuser } from '../database.ts';
import { eventually, type Freehold } from '../freehold.ts';
import { administer } from '../postgres.ts';
import type { Answer } from '../spawn.ts';

/** Returns the first 503 while the database refuses connections. */
export async function withoutDatabase({ db }: Freehold, ask: () => Promise<Answer>): Promise<Answer> {
  const [{ name }] = (await db.query<{ name: string }>('select current_database() as name')) as [{ name: string }];
  const url = inject('postgresUrl');
  await administer(url, `alter database ${name} allow_connections false`);
  await administer(url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  const away = await eventually(async () => {
    const answer = await ask();
    return answer.status === 503 && answer;
  });
  await administer(url, `alter database ${name} allow_connections true`);
  return away;
}

/** Returns the answer while a table has another name. */
export async function withoutTable({ db }: Freehold, table: string, ask: () => Promise<Answer>): Promise<Answer> {
  await asSuperuser(db, `alter table ${table} rename to ${table}_away`);
  const answer = await ask();
  await asSuperuser(db, `alter table ${table}_away rename to ${table}`);
  return answer;
}
