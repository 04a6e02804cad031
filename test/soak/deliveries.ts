/** Checks that each event reached every webhook that wants it. */
import type { Database } from '../../entities/database/database.ts';
import type { Account, Hook } from './account.ts';

interface Told {
  id: string;
  type: string;
  accountId: string;
  at: Date;
}

/** The service sends these events to every account. */
const PUBLIC = new Set(['status.changed', 'canary.updated']);

export async function eventsFor(db: Database, accounts: readonly Account[]): Promise<string[]> {
  const events = await db.query<Told>(`select id, type, account_id as "accountId", created_at as at from event`);
  return accounts.flatMap(({ id, hooks }) =>
    hooks.flatMap((hook) =>
      events
        .filter((event) => (event.accountId === id || PUBLIC.has(event.type)) && wants(hook, event))
        .filter((event) => !hook.mailbox.events.has(event.id))
        .map((event) => `${hook.mailbox.url} (${hook.filter}) never got ${event.type} ${event.id}`),
    ),
  );
}

/** A test message goes to one webhook only. */
const wants = ({ filter, since }: Hook, { type, at }: Told): boolean =>
  at > since &&
  type !== 'webhook.test' &&
  filter.split(',').some((pattern) => pattern === '*' || pattern === type || pattern === type.replace(/\..*/, '.*'));
