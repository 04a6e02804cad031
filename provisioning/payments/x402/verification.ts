/** Verifies payments by x402 at the turns of their customers. */
import { type Customer, CustomerTurns } from '../../../entities/turns.ts';
import type { X402Driver } from '../drivers/x402/driver.ts';
import { mismatchOf, type SignedPayment } from './message.ts';
import { refuseForNow } from './refusal.ts';

const VERIFY_TIMEOUT_MS = 20_000;

export class Verification {
  readonly #driver: X402Driver;
  /** A verification runs the code of a wallet on a node. So those of one account wait for each other. */
  readonly #turns = new CustomerTurns({
    places: 16,
    placesOfGroup: 2,
    placesOfSite: 2,
    waiting: 200,
    waitingOfGroup: 24,
    refusal:
      'The service verifies other payments of the account, or of new accounts of your network. Wait for one of them. Nothing was taken.',
  });

  constructor(driver: X402Driver) {
    this.#driver = driver;
  }

  /**
   * The reason why a payment cannot be settled; undefined: it can.
   * @param signal ends the wait for a turn
   * @throws ApiError if the driver cannot tell at the moment
   */
  async verify(payment: SignedPayment, customer: Customer, signal: AbortSignal): Promise<string | undefined> {
    const { authorization, signature } = payment;
    const mismatch = mismatchOf(this.#driver.terms, payment, authorization.value);
    const verify = () => this.#driver.verify(authorization, signature, AbortSignal.timeout(VERIFY_TIMEOUT_MS));
    return mismatch ?? this.#turns.run(customer, verify, signal).catch(refuseForNow);
  }

  /** Whether the payer has signed a payment. @throws ApiError if the driver cannot tell at the moment */
  isSigned({ authorization, signature }: SignedPayment, customer: Customer): Promise<boolean> {
    const ask = () => this.#driver.isSigned(authorization, signature);
    return this.#turns.run(customer, ask).catch(refuseForNow);
  }
}
