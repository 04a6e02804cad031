/**
 * Reduces the details of a client to those that the service reads. Sessions, streams and waiting calls keep them. So each
 * costs the same, however many details its client sends.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
} from '@modelcontextprotocol/server';
import { isRecord } from '../../compile/inputs.ts';
import { PAYMENT, PAYMENT_MAX } from '../payment.ts';
import { TEXT_MAX } from './rpc.ts';

type Members = Record<string, unknown>;
type Reduce = (value: unknown) => unknown;

/** Keeps these members of an object, each reduced. The SDK refuses other values than objects later. */
const only =
  (members: Readonly<Record<string, Reduce>>): Reduce =>
  (value) => {
    if (!isRecord(value)) return value;
    const kept: Members = {};
    for (const [name, reduce] of Object.entries(members))
      if (Object.hasOwn(value, name)) kept[name] = reduce(value[name]);
    return kept;
  };

const asSent: Reduce = (value) => value;
const empty = only({});
/** Joins characters, because a slice of a text would keep the whole text in memory. */
const short: Reduce = (value) =>
  typeof value === 'string' && value.length > TEXT_MAX ? Array.from(value.slice(0, TEXT_MAX)).join('') : value;

/** The capabilities that the SDK reads before it asks a client. */
const CAPABILITIES = only({
  elicitation: only({ form: empty, url: empty }),
  sampling: only({ context: empty, tools: empty }),
  roots: empty,
});
const INFO = only({ name: short, version: short });
const META_MEMBERS = {
  [PROTOCOL_VERSION_META_KEY]: asSent,
  [CLIENT_CAPABILITIES_META_KEY]: CAPABILITIES,
  [CLIENT_INFO_META_KEY]: INFO,
};
const META = only(META_MEMBERS);
/** A tool refuses an empty payment, as it would the long one. */
const PAID: Reduce = (payment) => ((JSON.stringify(payment) ?? '').length > PAYMENT_MAX ? {} : payment);
const TOKEN: Reduce = (token) => (String(token).length > TEXT_MAX ? undefined : token);
const CALL_META = only({ ...META_MEMBERS, progressToken: TOKEN, [PAYMENT]: PAID });
/** No server has a longer URI, so the service would grant no subscription to one. */
const URIS: Reduce = (value) =>
  Array.isArray(value) ? value.filter((uri) => typeof uri === 'string' && uri.length <= TEXT_MAX) : value;

/** The params of the messages that begin a session or a stream. */
const PARAMS: ReadonlyMap<unknown, Reduce> = new Map([
  ['initialize', only({ protocolVersion: asSent, capabilities: CAPABILITIES, clientInfo: INFO, _meta: META })],
  [
    'subscriptions/listen',
    only({
      notifications: only({
        toolsListChanged: asSent,
        promptsListChanged: asSent,
        resourcesListChanged: asSent,
        resourceSubscriptions: URIS,
      }),
      _meta: META,
    }),
  ],
]);

/** Returns a message, or each message of a batch, with the details that the service reads. The arguments stay as they are. */
export function withFewDetails(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(reduced);
  return reduced(body);
}

function reduced(message: unknown): unknown {
  if (!isRecord(message) || !isRecord(message.params)) return message;
  const { method, params } = message;
  const reduce = PARAMS.get(method);
  if (reduce) return { ...message, params: reduce(params) };
  return params._meta === undefined ? message : { ...message, params: { ...params, _meta: CALL_META(params._meta) } };
}
