/** The body of a message to a webhook, and an example of each. */
import { snake } from '../database/table.ts';
import type { Event, EventType } from '../history/event.ts';
import type { ToldEvent } from './events.ts';

/** Returns the example of a resource in the API; undefined for a resource that REST does not show. */
export type ExampleOf = (resource: string) => object | undefined;

const API_VERSION = '1.0.0';

/**
 * The body of a message. Its names are those of REST.
 * @param data the event's own members, and `object`: the resource as REST shows it
 */
export const bodyOf = (
  accountId: string,
  { id, type, createdAt }: Omit<Event, 'accountId' | 'subject' | 'data'>,
  data: object,
) => ({
  id,
  type,
  timestamp: createdAt.toISOString(),
  api_version: API_VERSION,
  account_id: accountId,
  data: Object.fromEntries(Object.entries(data).map(([name, value]) => [snake(name), value])),
});

const EXAMPLE = {
  id: 'evt_01m7z3eaymx8r1n4b6tq0c5d2h',
  accountId: 'acct_01m7z3eaymx8r1n4b6tq0c5d2h',
  createdAt: new Date('2026-11-21T12:00:00Z'),
};

/** An example of the body of an event that customers hear. */
export function exampleOfEvent(type: EventType, { object, data }: ToldEvent, exampleOf: ExampleOf): object {
  const resource = { ...exampleOf(resourceOf(type)), ...object };
  const shown = isGone(type) ? { id: (resource as { id?: string }).id, deleted: true } : resource;
  return bodyOf(EXAMPLE.accountId, { ...EXAMPLE, type }, { ...data, object: shown });
}

/** The type of the resource that an event concerns. */
export const resourceOf = (type: string): string => {
  const noun = type.split('.')[0]!;
  return noun === 'status' ? 'incident' : noun;
};
/** Whether the row of the resource is deleted. A server keeps its row. */
export const isGone = (type: string): boolean => type.endsWith('.deleted') && resourceOf(type) !== 'server';
