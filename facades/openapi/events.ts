/** The messages to webhooks, as OpenAPI describes them under `webhooks`. */
import { type ListedEvent, toldEvents } from '../../schema/index.ts';
import type { Define, JsonSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import { FRAGMENTS } from '../compile/resources.ts';
import { resourceExamples } from './examples.ts';

type Json = Record<string, unknown>;

const text = (description: string, maxLength: number) => ({ type: 'string', maxLength, description });
const id = (description: string) => ({ ...text(description, 64), pattern: '^[A-Za-z0-9_-]+$' });

/** The headers of Standard Webhooks, which sign a message. */
const SIGNATURE: Readonly<Record<string, JsonSchema & { description: string; example: string }>> = {
  'webhook-id': {
    ...id('The id of the event, the same at every attempt. Use it to ignore repeated messages.'),
    example: 'evt_01m7z3eaymx8r1n4b6tq0c5d2h',
  },
  'webhook-timestamp': {
    ...text('The time of the attempt, in seconds since the epoch.', 16),
    pattern: '^[0-9]+$',
    example: '1795262400',
  },
  'webhook-signature': {
    ...text('The signatures of Standard Webhooks, with spaces between them: v1, and base64.', 500),
    example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  },
};

/** The parameters that the messages share, by name. */
export const MESSAGE_HEADERS: Readonly<Record<string, Json>> = Object.fromEntries(
  Object.entries(SIGNATURE).map(([name, { description, example, ...schema }]) => [
    name,
    { name, in: 'header', required: true, description, schema, example },
  ]),
);

const RESPONSES: Json = {
  '2XX': { description: 'The receiver took the message.' },
  410: { description: 'The receiver wants no more messages. The service disables the webhook.' },
  default: { description: 'The service sends the message again later, ten times in all.' },
};

/** A thing that is gone, that REST does not show, or that is too large for a message. */
const NAMED: JsonSchema = {
  type: 'object',
  description: 'A resource that is gone, or that a message does not show.',
  properties: {
    id: id('The id of the resource.'),
    deleted: { const: true, description: 'Present if the resource is gone.' },
  },
  required: ['id'],
};

/** The messages, by the type of their event. None without operations on webhooks. */
export function eventsOf(operations: readonly Operation[], define: Define): Json {
  if (!operations.some(({ noun }) => noun === 'webhooks')) return {};
  const events = toldEvents(resourceExamples(operations));
  return Object.fromEntries(events.map((event) => [event.type, { post: describe(event, define) }]));
}

function describe({ type, description, resource, example }: ListedEvent, define: Define): Json {
  const schema = bodySchema(FRAGMENTS[resource as keyof typeof FRAGMENTS], define);
  return {
    operationId: type,
    tags: ['webhooks'],
    summary: type,
    description,
    security: [],
    parameters: Object.keys(SIGNATURE).map((name) => ({ $ref: `#/components/parameters/${name}` })),
    requestBody: { required: true, content: { 'application/json': { schema, example } } },
    responses: RESPONSES,
  };
}

/** The body. Events about the same kind of resource share a schema. */
function bodySchema(fragment: string | undefined, define: Define): JsonSchema {
  const named = define('NamedResource', () => NAMED);
  const object = fragment ? { anyOf: [{ $ref: `#/components/schemas/${fragment}` }, named] } : named;
  return define(`${fragment ?? 'Named'}Event`, () => ({
    type: 'object',
    description: 'The body of a message to a webhook.',
    properties: {
      id: id('The id of the event.'),
      type: { ...text('The type of the event.', 64), pattern: '^[a-z_.]+$' },
      timestamp: { type: 'string', format: 'date-time', maxLength: 30, description: 'The time of the change.' },
      api_version: { ...text('The version of the API.', 16), pattern: '^[0-9.]+$' },
      account_id: id('The account of the webhook.'),
      data: {
        type: 'object',
        description: 'The resource, and the members that the description of the event names.',
        properties: { object: { ...object, description: 'The resource after the change, as REST shows it.' } },
        required: ['object'],
        additionalProperties: true,
      },
    },
    required: ['id', 'type', 'timestamp', 'api_version', 'account_id', 'data'],
  }));
}
