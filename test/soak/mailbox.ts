/**
 * The receiver of one webhook, on loopback. It verifies each message on arrival, and sometimes refuses the first
 * attempt.
 */
import { type Receiver, startReceiver, verify } from '../setup/receiver.ts';
import type { Chance } from './chance.ts';

/** The receiver refuses one first attempt in this many. The second attempt follows about five seconds later. */
const REFUSED_ONE_IN = 60;

export class Mailbox {
  readonly url: string;
  /** The ids of events that arrived with a valid signature. */
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

  /** Sets the secret, and verifies the messages that came before it was known. */
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
