/**
 * The transport of a session of 2025. The SDK counts the questions of each server from zero. So a reopened session could take
 * the answer to an earlier question for its own. Here each question gets a random id.
 */
import { randomUUID } from 'node:crypto';
import {
  type JSONRPCMessage,
  type RequestId,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { isRecord } from '../../compile/inputs.ts';

type Sending = Parameters<WebStandardStreamableHTTPServerTransport['send']>[1];

export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  /** The ids of the SDK by those that the client sees. */
  readonly #asked = new Map<RequestId, RequestId>();

  override send(message: JSONRPCMessage, options?: Sending): Promise<void> {
    return super.send(this.#sent(message), options);
  }

  /** Whether a message is no answer, or a question waits for it. */
  awaits(message: unknown): boolean {
    return !isAnswer(message) || this.#asked.has(message.id);
  }

  /** Returns an awaited answer with the id of the SDK, and any other message as it is. */
  received(message: unknown): unknown {
    if (!isAnswer(message)) return message;
    const id = this.#asked.get(message.id);
    this.#asked.delete(message.id);
    return { ...message, id };
  }

  #sent(message: JSONRPCMessage): JSONRPCMessage {
    if (!('method' in message)) return message;
    if ('id' in message) {
      const id = randomUUID();
      this.#asked.set(id, message.id);
      return { ...message, id };
    }
    if (message.method !== 'notifications/cancelled') return message;
    const known = [...this.#asked].find(([, id]) => id === message.params?.requestId)?.[0];
    if (known === undefined) return message;
    this.#asked.delete(known);
    return { ...message, params: { ...message.params, requestId: known } };
  }
}

const isAnswer = (message: unknown): message is { id: RequestId } =>
  isRecord(message) && message.method === undefined && message.id !== undefined;
