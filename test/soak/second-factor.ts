/** The authenticator of an account, together with its recovery codes. */
import { Secret, TOTP } from 'otpauth';

const STEP_MS = 30_000;

export class SecondFactor {
  readonly #totp: TOTP;
  readonly #recoveryCodes: string[] = [];
  #usedStep = 0;

  constructor(secret: string) {
    this.#totp = new TOTP({ secret: Secret.fromBase32(secret) });
  }

  /** The current code of the authenticator. The service accepts each time step once. */
  codeOfNow(): string {
    this.#usedStep = Math.floor(Date.now() / STEP_MS);
    return this.#totp.generate();
  }

  keep(recoveryCodes: readonly string[]): void {
    this.#recoveryCodes.push(...recoveryCodes);
  }

  /** The number of codes that the service would accept now. */
  get left(): number {
    return this.#recoveryCodes.length + Number(this.#isFresh());
  }

  /** Returns an unused code. */
  code(): string {
    return this.#isFresh() ? this.codeOfNow() : this.#recoveryCodes.pop()!;
  }

  #isFresh(): boolean {
    return Math.floor(Date.now() / STEP_MS) > this.#usedStep;
  }
}
