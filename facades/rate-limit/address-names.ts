/** The names under which addresses count: keyed hashes, by a new key each hour. */
import { createHmac, hkdfSync } from 'node:crypto';
import type { WINDOW_SECONDS } from './window.ts';

export class AddressNames {
  readonly #secret: Buffer;
  #latest: { hour: number; key: Buffer } | undefined;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /** @param window the longest window of its limit */
  named(caller: string, window: keyof typeof WINDOW_SECONDS = 'minute'): string {
    const hour = Math.floor(Date.now() / 3_600_000);
    if (this.#latest?.hour !== hour)
      this.#latest = { hour, key: Buffer.from(hkdfSync('sha256', this.#secret, '', `addresses ${hour}`, 32)) };
    const mac = createHmac('sha256', this.#latest.key).update(caller).digest();
    return `${window === 'hour' ? 'net' : 'ip'}:${mac.toString('base64url', 0, 16)}`;
  }
}
