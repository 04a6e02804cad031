/** The authenticator of an account, and the sheet of paper with its recovery codes. */
import { Secret, TOTP } from 'otpauth';

const STEP_MS = 30_000;

export class SecondFactor {
  readonly #totp: TOTP;
  readonly #recoveryCodes: string[] = [];
  #usedStep = 0;

  constructor(secret: string) {
    this.#totp = new TOTP({ secret: Secret.fromBase32(secret) });
  }

  /** The code of the authenticator now; the service takes each of its steps once. */
  codeOfNow(): string {
    this.#usedStep = Math.floor(Date.now() / STEP_MS);
    return this.#totp.generate();
  }

  keep(recoveryCodes: readonly string[]): void {
    this.#recoveryCodes.push(...recoveryCodes);
  }

  /** How many codes could be used now. */
  get left(): number {
    return this.#recoveryCodes.length + Number(this.#isFresh());
  }

  /** A code that was not used before. */
  code(): string {
    return this.#isFresh() ? this.codeOfNow() : this.#recoveryCodes.pop()!;
  }

  #isFresh(): boolean {
    return Math.floor(Date.now() / STEP_MS) > this.#usedStep;
  }
}
