/** Turns for calls to the outside that every account may cause, and that wait for others. */
import { siteOf } from './networks.ts';
import { type TurnLimits, Turns } from './turns.ts';

interface CustomerTurnLimits extends TurnLimits {
  /** How much work of the free accounts of one site runs at once. */
  placesOfSite: number;
}
/** The caller of the work. */
export interface Customer {
  accountId: string;
  /** The IP address of the caller. */
  address: string | null;
  /** Whether the account ever had money. */
  hasPaid: boolean;
}

/**
 * Each account waits for its own work. Free accounts are easy to make. So those of a site share turns, and all have half of the
 * places.
 */
export class CustomerTurns {
  readonly #accounts: Turns;
  readonly #free: Turns;
  readonly #sites: Turns;

  constructor({ placesOfSite, ...limits }: CustomerTurnLimits) {
    this.#accounts = new Turns(limits);
    // An account that waits here for itself keeps no place of its site.
    this.#free = new Turns({ ...limits, places: Number.POSITIVE_INFINITY });
    this.#sites = new Turns({ ...limits, places: limits.places / 2, placesOfGroup: placesOfSite });
  }

  /** Does the work at the turn of the customer. @throws ApiError rate_limited if too much waits, or the error of the work */
  run<T>({ accountId, address, hasPaid }: Customer, work: () => Promise<T>): Promise<T> {
    const atTurn = () => this.#accounts.run(accountId, work);
    if (hasPaid) return atTurn();
    return this.#free.run(accountId, () => this.#sites.run(siteOf(address ?? ''), atTurn));
  }
}
