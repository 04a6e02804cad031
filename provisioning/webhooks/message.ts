/** The body of a delivery: the event, and what it is about as REST shows it. */
import type { EntitySchema } from 'typeorm';
import type { Event, ResourceType } from '../../entities/history/event.ts';
import { RESOURCE_ROWS } from '../../entities/history/record.ts';
import type { WebhookDelivery } from '../../entities/webhooks/webhook.ts';

/**
 * Shows a row as the REST API does. Provisioning knows no facade, so main.ts gives it this; undefined where REST shows
 * no such thing.
 */
export type RenderResource = (resource: string, row: object) => Promise<object | undefined>;

const API_VERSION = '1.0.0';
const BODY_BYTES_MAX = 20 * 1024;

/** The same at every attempt: the row is the one that the change left. */
export async function messageOf(
  { accountId, snapshot }: Pick<WebhookDelivery, 'accountId' | 'snapshot'>,
  event: Event,
  render: RenderResource,
): Promise<string> {
  const { status: _, ...data } = event.data;
  const previous = snapshot?.previous_state;
  const bodyWith = (object: object) =>
    JSON.stringify({
      id: event.id,
      type: event.type,
      timestamp: event.createdAt.toISOString(),
      api_version: API_VERSION,
      account_id: accountId,
      data: { ...data, object, ...(typeof previous === 'string' && { previous_status: previous.toLowerCase() }) },
    });
  const body = bodyWith((await shown(event, snapshot, render)) ?? named(event));
  return Buffer.byteLength(body) <= BODY_BYTES_MAX ? body : bodyWith(named(event));
}

/** What can be said of something that is gone, or that REST does not show: its name. */
const named = ({ type, subject }: Event) => ({ id: subject, ...(type.endsWith('.deleted') && { deleted: true }) });

async function shown({ type }: Event, snapshot: WebhookDelivery['snapshot'], render: RenderResource) {
  const noun = type.split('.')[0]!;
  const resource = (noun === 'status' ? 'incident' : noun) as ResourceType;
  const rows = RESOURCE_ROWS[resource];
  return rows && snapshot?.id ? render(resource, rowFrom(rows.entity, snapshot)) : undefined;
}

/** A row that was kept as JSON. */
function rowFrom({ options }: EntitySchema, snapshot: Record<string, unknown>): object {
  const value = (type: unknown, kept: unknown) => {
    if (kept === null || kept === undefined) return null;
    if (type === 'bigint') return BigInt(kept as number);
    if (type === 'bytea') return Buffer.from((kept as string).slice(2), 'hex'); // as \\x0f in JSON
    return type === 'timestamptz' ? new Date(kept as string) : kept;
  };
  return Object.fromEntries(
    Object.entries(options.columns).map(([name, column]) => [name, value(column?.type, snapshot[column!.name!])]),
  );
}
