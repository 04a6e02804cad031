/**
 * Rate limits: a minute and an hour for each credential and each account, a minute for each other address. All tokens
 * of a refresh family count as one credential. So do those of an OAuth client, if they are no logins. A login makes a
 * few urgent calls beside the full limit of its account. So a thief's calls do not keep the owner from ending the
 * thief's credential. The service counts after it has checked the credential, so a neighbour never limits a customer who has paid.
 * It counts addresses by a keyed hash, and changes the key every hour. Reads without a credential and each kind of
 * public change count apart. Many callers may share an address, so a stranger's reads must not keep a customer from
 * logging in.
 */
import {
  ApiError,
  atTurnOf,
  callsCountAs,
  freeSiteOf,
  isCircuit,
  networkOf,
  siteOf,
  type Viewer,
} from '../../schema/index.ts';
import type { Log } from '../http/errors.ts';
import { AddressNames } from './address-names.ts';
import { Denials } from './denials.ts';
import { MemoryRateLimits } from './memory.ts';
import { type Standing, UNPAID } from './rate-headers.ts';
import { type Limit, standingOf, UNLIMITED, uncounted } from './standing.ts';
import type { RateLimitStore, Taken } from './window.ts';

export interface Quotas {
  keyPerMinute: number;
  keyPerHour: number;
  /** Of all credentials of an account together. */
  accountPerMinute: number;
  accountPerHour: number;
  publicPerMinute: number;
  /** Pages of the site. */
  pagesPerMinute: number;
  /** Of all circuits of an onion service together. */
  onionPerMinute: number;
  /** Changes of an account that never paid or is suspended. */
  unpaidPerHour: number;
}

/** The properties of a call that decide about its limits. */
export interface Call {
  /** The kind of call for callers without a credential, who have a quota for each. */
  kind?: string | undefined;
  /** Whether a login may make it beside the full limit of its account. */
  urgent?: boolean;
  /** Whether it may change something, or pay. Absent: it only reads. */
  change?: Change | undefined;
  /** Whether it has counted already, but not as a change. */
  counted?: boolean;
  /** Whether it comes to the internal listener. There all customers of a tool of the operator have its address. */
  isInternal?: boolean;
}

/**
 * Payments count apart, so that no other change keeps an account from paying. Strangers make refusals, so these keep an account
 * from nothing else.
 */
export type Change = 'change' | 'payment' | 'refresh' | 'refusal';

export interface RateLimitOptions {
  quotas: Quotas;
  /** The limiter derives the keys for the hashes of addresses from it. */
  secret: Buffer;
  /** The store in which processes count together. Absent: this process counts alone. */
  shared?: RateLimitStore | undefined;
  /** Whether the account ever had money, and is not suspended. A read may count as before a suspension for a minute. */
  isPayer: (accountId: string, isRead: boolean) => Promise<boolean>;
  onError: Log;
}

/** The urgent calls of a login beside the full limit of its account. */
const URGENT = { perMinute: 10, perHour: 100 };
/**
 * The logins of an account that can use up their urgent calls at once. One stolen login cannot fill it, and a further
 * login needs the password. A thief of the password can take the account over anyway.
 */
const LOGINS_OF_ACCOUNT = 20;
const URGENT_OF_ACCOUNT = {
  perMinute: LOGINS_OF_ACCOUNT * URGENT.perMinute,
  perHour: LOGINS_OF_ACCOUNT * URGENT.perHour,
};
/** The networks of a site that can use up their limits at once. */
const NETWORKS_OF_SITE = 20;
/** The calls in a minute of an account that never paid that a neighbour with another account cannot use up. */
const FIRST_PER_MINUTE = 30;
/** The accounts of a network that can use up their limits of unpaid changes at once. */
const UNPAID_OF_NETWORK = 4;
/** Pause after a failure of the shared store. This process counts alone meanwhile. */
const ALONE_MS = 1_000;

export class RateLimits {
  readonly #quotas: Quotas;
  readonly #shared: RateLimitStore | undefined;
  readonly #isPayer: RateLimitOptions['isPayer'];
  readonly #local = new MemoryRateLimits();
  readonly #onError: Log;
  readonly #denials = new Denials();
  #aloneUntil = 0;
  readonly #addresses: AddressNames;

  constructor({ quotas, secret, shared, isPayer, onError }: RateLimitOptions) {
    this.#quotas = quotas;
    this.#addresses = new AddressNames(secret);
    this.#shared = shared;
    this.#isPayer = isPayer;
    this.#onError = onError;
  }

  /** Counts a call. @throws ApiError rate_limited if too many calls of the caller wait for their count */
  async take(viewer: Viewer | null, address: string, call: Call = {}): Promise<Standing> {
    try {
      const unpaidId = await this.#unpaidIdOf(viewer, address, call);
      return await atTurnOf({ viewer, address }, () => this.#takeAtTurn(viewer, address, call, unpaidId));
    } catch (error) {
      throw error instanceof ApiError ? uncounted(error, this.#limits(viewer, address, call)) : error;
    }
  }

  async #takeAtTurn(viewer: Viewer | null, address: string, call: Call, unpaidId: string | undefined) {
    const limits = call.counted ? [] : this.#limits(viewer, address, call);
    if (unpaidId) limits.push(...this.#neighbourLimitsOf(address, await this.#kindOf(unpaidId, call)));
    if (!call.change && !call.urgent) return this.#take(limits);
    const login = hasUrgent(viewer) ? callsCountAs(viewer) : undefined;
    const unpaid = await this.#unpaidLimitsOf(viewer?.accountId ?? null, address, call.change, login);
    const standing = await this.#take([...limits, ...unpaid('')]);
    if (!standing.deniedUntil || !call.urgent || !hasUrgent(viewer)) return standing;
    return this.#take([...this.#urgentLimitsOf(viewer, address, unpaidId), ...unpaid('urgent')]);
  }

  /**
   * Counts a change under the limits of accounts that never paid alone, because the call has counted under the others. The
   * question takes the turn of the present caller. So the security log of all accounts waits for no turn.
   */
  async takeChange(accountId: string | null, address: string | null, change: Change): Promise<Standing> {
    const unpaid = await this.#unpaidLimitsOf(accountId, address, change);
    return this.#take(unpaid(''));
  }

  /** Counts a request for a page of the site. Pages cost no query, so each process counts them alone, in memory. */
  async takePage(address: string): Promise<Standing> {
    const limits = this.#strangerLimitsOf(address, 'page', this.#quotas.pagesPerMinute);
    return this.#take(limits, (all) => this.#local.take(all));
  }

  async #take(limits: readonly Limit[], count = (all: readonly Limit[]) => this.#count(all)): Promise<Standing> {
    if (!limits.length) return { windows: [], deniedUntil: undefined };
    const denied = this.#denials.of(limits);
    if (denied) return denied;
    const taken = await count(limits);
    const standings = limits.map((limit, i) => standingOf(taken[i]!, limit));
    for (const [i, standing] of standings.entries())
      if (standing.deniedUntil) this.#denials.add(limits[i]!.name, standing);
    const deniedUntil = Math.max(0, ...standings.map((standing) => standing.deniedUntil ?? 0)) || undefined;
    return { windows: standings.flatMap(({ windows }) => windows), deniedUntil };
  }

  /** The state of a stranger whom a limit refuses at present, or undefined. Counts nothing, so it may come before all work. */
  deniedStranger(address: string): Standing | undefined {
    return this.#denials.size ? this.#denials.of(this.#strangerLimitsOf(address, '')) : undefined;
  }

  #limits(viewer: Viewer | null, address: string, { kind = '' }: Call = {}): Limit[] {
    return viewer ? this.#limitsOf(viewer) : this.#strangerLimitsOf(address, kind);
  }

  #limitsOf(viewer: Viewer): Limit[] {
    const { accountId } = viewer;
    const { accountPerMinute, accountPerHour } = this.#quotas;
    const own = this.#ownLimitOf(viewer);
    if (!accountId) return [own];
    const windows = { minute: 'account', hour: 'account_hour' };
    return [own, { name: accountId, perMinute: accountPerMinute, perHour: accountPerHour, ...windows }];
  }

  #ownLimitOf(viewer: Viewer): Limit {
    const { keyPerMinute, keyPerHour } = this.#quotas;
    return { name: callsCountAs(viewer), perMinute: keyPerMinute, perHour: keyPerHour, minute: 'minute', hour: 'hour' };
  }

  /** Whether a login has urgent calls beside the full limit of its account. Counts nothing. */
  hasUrgentCalls(viewer: Viewer | null, address: string): boolean {
    const unpaidId = viewer?.isUnpaid ? viewer.accountId : undefined;
    return hasUrgent(viewer) && !this.#denials.of(this.#urgentLimitsOf(viewer, address, unpaidId));
  }

  /** The limits of a login whose account has no calls left. */
  #urgentLimitsOf(viewer: Viewer, address: string, unpaidId: string | null | undefined): Limit[] {
    const ofAccount = { minute: 'urgent_account', hour: 'urgent_account_hour' };
    return [
      this.#ownLimitOf(viewer),
      { name: `urgent ${callsCountAs(viewer)}`, ...URGENT, minute: 'urgent', hour: 'urgent_hour' },
      { name: `urgent ${viewer.accountId}`, ...URGENT_OF_ACCOUNT, ...ofAccount },
      ...(unpaidId ? this.#neighbourLimitsOf(address, 'urgent') : []),
    ];
  }

  /** A stranger can have circuits or networks of a site without end. So all of them together have a limit, too. */
  #strangerLimitsOf(address: string, kind: string, perMinuteOfOne = this.#quotas.publicPerMinute): Limit[] {
    const { publicPerMinute, onionPerMinute } = this.#quotas;
    // All circuits together may load as many pages as calls, also where the operator has raised the limit of calls.
    const times = Math.max(1, perMinuteOfOne / publicPerMinute);
    const limit = (caller: string, most: number, minute: string): Limit => {
      const perMinute = Math.min(UNLIMITED, most);
      return { name: this.#addresses.named(caller + kind), perMinute, perHour: UNLIMITED, minute, hour: 'hour' };
    };
    const [network, site] = [networkOf(address), siteOf(address)];
    const own = limit(network, perMinuteOfOne, kind === 'page' ? 'pages' : 'public');
    if (isCircuit(address)) return [own, limit('circuits', Math.ceil(times * onionPerMinute), 'onion')];
    return site === network ? [own] : [own, limit(site, NETWORKS_OF_SITE * perMinuteOfOne, 'site')];
  }

  /**
   * One caller can have many accounts that never paid. So all of a network together make as many calls as one account. The
   * first calls of each account, urgent calls and payments count apart. So a neighbour needs many accounts to use them up.
   */
  #neighbourLimitsOf(address: string, kind: 'first' | 'calls' | 'urgent' | 'payment'): Limit[] {
    const limit = (caller: string, accounts: number, group: string): Limit => ({
      name: this.#addresses.named(`${caller} ${UNPAID} ${kind}`),
      perMinute: Math.min(UNLIMITED, accounts * this.#quotas.accountPerMinute),
      ...{ perHour: UNLIMITED, minute: `${UNPAID}_${kind}_${group}`, hour: 'hour' },
    });
    const [network, site] = [networkOf(address), freeSiteOf(address)];
    const own = limit(network, 1, 'network');
    return site === network ? [own] : [own, limit(site, NETWORKS_OF_SITE, 'site')];
  }

  /** The account of the caller, if it never paid and its neighbours count. Notes it in the viewer, for the turns of its work. */
  async #unpaidIdOf(viewer: Viewer | null, address: string, { counted, isInternal }: Call) {
    const { accountId } = viewer ?? {};
    if (counted || isInternal || !viewer || !accountId) return undefined;
    // An unknown account asks at the turn of those that never paid.
    const asking = { viewer: { ...viewer, isUnpaid: viewer.isUnpaid ?? true }, address };
    viewer.isUnpaid = !(await atTurnOf(asking, () => this.#isPayer(accountId, true)));
    return viewer.isUnpaid ? accountId : undefined;
  }

  /** The kind of a call that counts with those of neighbours. The first ones of an account in a minute are a kind. */
  async #kindOf(accountId: string, { change }: Call): Promise<'first' | 'calls' | 'payment'> {
    if (change === 'payment') return change;
    const limit = { name: `unpaid first ${accountId}`, perMinute: FIRST_PER_MINUTE, perHour: UNLIMITED };
    const { deniedUntil } = await this.#take([{ ...limit, minute: `${UNPAID}_first`, hour: 'hour' }]);
    return deniedUntil === undefined ? 'first' : 'calls';
  }

  /**
   * The limits of a change by an account that never paid or is suspended. Each change leaves rows that stay, and registrations are free. So
   * all such accounts of a network have a limit, too.
   * @param login the login of the caller, whose urgent calls and payments no other credential uses up
   * @returns a function for the limits of calls of a kind
   */
  async #unpaidLimitsOf(
    accountId: string | null,
    address: string | null,
    change: Change | undefined,
    login?: string,
  ): Promise<(kind: string) => Limit[]> {
    if (!change || !accountId || (await this.#isPayer(accountId, false))) return () => [];
    const limit = (name: string, accounts: number, hour: string): Limit => {
      const perHour = Math.min(UNLIMITED, accounts * this.#quotas.unpaidPerHour);
      return { name, perMinute: UNLIMITED, perHour, minute: 'minute', hour };
    };
    const own = (kind: string) =>
      login && (kind === 'urgent' || change === 'payment')
        ? [
            limit(`unpaid ${change} ${kind} of ${login}`, 1, UNPAID),
            limit(`unpaid ${change} ${kind} logins ${accountId}`, LOGINS_OF_ACCOUNT, `${UNPAID}_account`),
          ]
        : [limit(`unpaid ${change} ${kind} ${accountId}`, 1, UNPAID)];
    // Neighbours cannot keep an account from paying.
    if (address === null || change === 'payment') return own;
    const [network, site] = [networkOf(address), freeSiteOf(address)];
    return (kind) => {
      const of = (caller: string) => this.#addresses.named(`${caller} unpaid ${change} ${kind}`, 'hour');
      return [
        ...own(kind),
        limit(of(network), UNPAID_OF_NETWORK, `${UNPAID}_network`),
        ...(site === network ? [] : [limit(of(site), UNPAID_OF_NETWORK * NETWORKS_OF_SITE, `${UNPAID}_site`)]),
      ];
    };
  }

  async #count(limits: readonly Limit[]): Promise<Taken[]> {
    if (this.#shared && this.#aloneUntil <= Date.now()) {
      try {
        return await this.#shared.take(limits);
      } catch (error) {
        // The caller waits at too many turns. The store works.
        if (error instanceof ApiError) throw error;
        this.#aloneUntil = Date.now() + ALONE_MS;
        this.#onError({ message: 'Rate limits cannot be shared at the moment.', name: (error as Error).name });
      }
    }
    return this.#local.take(limits);
  }
}

const hasUrgent = (viewer: Viewer | null): viewer is Viewer => viewer?.isLogin ?? false;
