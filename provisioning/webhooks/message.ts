/** The body of a message: the event, and its resource as REST shows it. */
import type { EntitySchema } from 'typeorm';
import type { Event, ResourceType } from '../../entities/history/event.ts';
import { RESOURCE_ROWS } from '../../entities/history/record.ts';
import { bodyOf, resourceOf } from '../../entities/webhooks/body.ts';
import type { Snapshot } from '../../entities/webhooks/delivery.ts';

/**
 * Shows a row as the REST API does, or returns undefined for a resource that REST does not show. main.ts passes it,
 * because provisioning must not import facades.
 */
export type RenderResource = (resource: string, row: object) => Promise<object | undefined>;

const BODY_BYTES_MAX = 20 * 1024;

/** The account of a message, and the changed row. The row is null for an event without one. */
interface Told {
  accountId: string;
  snapshot: Snapshot | null;
}

/** Builds the body, which is the same at every attempt because the service keeps the row after the change. */
export async function messageOf({ accountId, snapshot }: Told, event: Event, render: RenderResource): Promise<string> {
  const { status: _, ...data } = event.data;
  const previous = snapshot?.previous_state;
  const bodyWith = (object: object) => {
    const status = typeof previous === 'string' && { previous_status: previous.toLowerCase() };
    return JSON.stringify(bodyOf(accountId, event, { ...data, object, ...status }));
  };
  const body = bodyWith((await shown(event, snapshot, render)) ?? named(event));
  return Buffer.byteLength(body) <= BODY_BYTES_MAX ? body : bodyWith(named(event));
}

/** Names a resource that is deleted, that REST does not show, or that is too large. */
const named = ({ type, subject }: Event) => ({ id: subject, ...(type.endsWith('.deleted') && { deleted: true }) });

async function shown({ type }: Event, snapshot: Snapshot | null, render: RenderResource) {
  const resource = resourceOf(type) as ResourceType;
  const rows = RESOURCE_ROWS[resource];
  return rows && snapshot?.id ? render(resource, rowFrom(rows.entity, snapshot)) : undefined;
}

/** Restores the row of a table from its JSON. */
function rowFrom({ options }: EntitySchema, snapshot: Record<string, unknown>): object {
  const value = (type: unknown, kept: unknown) => {
    if (kept === null || kept === undefined) return null;
    if (type === 'bigint') return BigInt(kept as number);
    if (type === 'bytea') return Buffer.from((kept as string).slice(2), 'hex'); // PostgreSQL writes bytes as \\x0f
    return type === 'timestamptz' ? new Date(kept as string) : kept;
  };
  return Object.fromEntries(
    Object.entries(options.columns).map(([name, column]) => [name, value(column?.type, snapshot[column!.name!])]),
  );
}
