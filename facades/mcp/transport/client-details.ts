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
const cut = (value: unknown, charactersMax: number): unknown =>
  typeof value === 'string' && value.length > charactersMax
    ? Array.from(value.slice(0, charactersMax)).join('')
    : value;
const short: Reduce = (value) => cut(value, TEXT_MAX);
const LONG_MAX = 2_000;
const long: Reduce = (value) => cut(value, LONG_MAX);

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
/** A tool refuses an empty payment, as it would the long one. An empty answer of a user confirms nothing. */
const SMALL: Reduce = (value) => ((JSON.stringify(value) ?? '').length > PAYMENT_MAX ? {} : value);
/** The SDK refuses other tokens than texts and numbers. */
const TOKEN: Reduce = (token) => (typeof token === 'string' && token.length > TEXT_MAX ? undefined : token);
const CALL_META = only({ ...META_MEMBERS, progressToken: TOKEN, [PAYMENT]: SMALL });
/** The answers of a user, and the question. A cut question has a wrong signature. */
const ANSWERS = { requestState: long, inputResponses: SMALL };
/** No server has a longer URI, so the service would grant no subscription to one. */
const URIS: Reduce = (value) =>
  Array.isArray(value) ? value.filter((uri) => typeof uri === 'string' && uri.length <= TEXT_MAX) : value;

/** The params of the messages that begin a session or a stream, and of calls. */
const PARAMS: ReadonlyMap<unknown, Reduce> = new Map([
  ['initialize', only({ protocolVersion: asSent, capabilities: CAPABILITIES, clientInfo: INFO, _meta: META })],
  ['tools/call', only({ ...ANSWERS, name: long, arguments: asSent, _meta: CALL_META })],
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

/** The params of all other messages. */
const OTHERS = only({
  ...ANSWERS,
  ...{ name: long, uri: long, cursor: long, level: long, requestId: long, reason: long },
  ...{ progressToken: TOKEN, progress: long, total: long, message: long },
  ...{ arguments: SMALL, ref: SMALL, argument: SMALL, context: SMALL, _meta: CALL_META },
});

/** Returns a message, or each message of a batch, with the details that the service reads. The arguments of tools stay as they are. */
export function withFewDetails(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(reduced);
  return reduced(body);
}

function reduced(message: unknown): unknown {
  if (!isRecord(message) || !isRecord(message.params)) return message;
  const { jsonrpc, id, method, params } = message;
  const reduce = PARAMS.get(method) ?? OTHERS;
  return { jsonrpc, ...('id' in message && { id }), method, params: reduce(params) };
}
