/** The authenticator of an account, together with its recovery codes. */
import { Secret, TOTP } from 'otpauth';

const STEP_MS = 30_000;

export class SecondFactor {
  readonly #totp: TOTP;
  readonly #recoveryCodes: string[] = [];
  /** Whether the account no longer asks for it. */
  isOff = false;
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

  /** Calls with an unused code. A refused recovery code, such as that of a suspended account, stays unused. */
  async use<T>(call: (code: string) => Promise<T>): Promise<T> {
    if (this.#isFresh()) return call(this.codeOfNow());
    const code = this.#recoveryCodes.pop()!;
    return call(code).catch((error) => {
      this.#recoveryCodes.push(code);
      throw error;
    });
  }

  #isFresh(): boolean {
    return Math.floor(Date.now() / STEP_MS) > this.#usedStep;
  }
}
