/**
 * Where one webhook is told of events: a receiver on loopback that verifies each message when it comes, and sometimes
 * refuses the first attempt.
 */
import { type Receiver, startReceiver, verify } from '../receiver.ts';
import type { Chance } from './chance.ts';

/** One message in so many is refused the first time. Its second attempt follows after five seconds. */
const REFUSED_ONE_IN = 60;

export class Mailbox {
  readonly url: string;
  /** The ids of events that came, each signed as it should be. */
  readonly events = new Set<string>();
  readonly faults: string[] = [];
  readonly #receiver: Receiver;
  readonly #refused = new Set<string>();
  #unverified: Receiver['received'] = [];
  #secret: string | undefined;

  static async open(chance: Chance): Promise<Mailbox> {
    return new Mailbox(await startReceiver(), chance);
  }

  private constructor(receiver: Receiver, chance: Chance) {
    this.url = receiver.url;
    this.#receiver = receiver;
    receiver.answer = (response) => {
      const message = receiver.received.pop()!;
      const id = message.headers['webhook-id']!;
      const isTest = message.body.type === 'webhook.test';
      if (!isTest && !this.#refused.has(id) && chance.oneIn(REFUSED_ONE_IN)) {
        this.#refused.add(id);
        return void response.writeHead(503).end();
      }
      this.#unverified.push(message);
      if (this.#secret) this.#verify(this.#secret);
      response.writeHead(204).end();
    };
  }

  /** The secret is known only after the first messages may have come. */
  open(secret: string): void {
    this.#secret = secret;
    this.#verify(secret);
  }

  close(): Promise<void> {
    return this.#receiver.close();
  }

  #verify(secret: string): void {
    for (const message of this.#unverified.splice(0)) {
      const id = message.headers['webhook-id']!;
      try {
        verify(secret, message);
        if (message.body.id !== id) throw new Error('The body names another event.');
        this.events.add(id);
      } catch (error) {
        this.faults.push(`${this.url} got ${id} (${message.body.type}): ${error}`);
      }
    }
  }
}
