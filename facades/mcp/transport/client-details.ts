/**
 * Reduces the details of a client to those that the service reads. Sessions and streams keep them. So each session costs the
 * same, however many details its client sends.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
} from '@modelcontextprotocol/server';
import { isRecord } from '../../compile/inputs.ts';
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
const META = only({
  [PROTOCOL_VERSION_META_KEY]: asSent,
  [CLIENT_CAPABILITIES_META_KEY]: CAPABILITIES,
  [CLIENT_INFO_META_KEY]: INFO,
});
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

/** Returns a message, or each message of a batch, with the params that the service reads. Other messages stay as they are. */
export function withFewDetails(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(reduced);
  return reduced(body);
}

function reduced(message: unknown): unknown {
  const reduce = isRecord(message) ? PARAMS.get(message.method) : undefined;
  if (!reduce) return message;
  const { params } = message as Members;
  return params === undefined ? message : { ...(message as Members), params: reduce(params) };
}
