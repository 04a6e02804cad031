/**
 * Records attacks for the owner of an account, as audit entries and as events for webhooks. No address is in them. A flood
 * makes at most one entry in ten minutes for each kind and credential, also across processes. The entry counts what came
 * since the entry before. An account gets few entries an hour, because each one leaves an event that stays. The first of them
 * name credentials. Attacks on no account leave counts in the log of the service alone. An account has a share of the memory,
 * so a flood on one account silences the log of no other.
 */
import { Account } from '../../entities/accounts/account.ts';
import { forAllCallers } from '../../entities/caller.ts';
import type { Database } from '../../entities/database/database.ts';
import { LOCK_NAME } from '../../entities/database/lock-name.ts';
import { find } from '../../entities/database/table.ts';
import { ApiError, type ErrorCode } from '../../entities/errors.ts';
import {
  type Actor,
  COUNT_RECENT_ENTRIES,
  FIND_RECENT_ENTRY,
  OPERATOR_ACCOUNT,
  SYSTEM,
} from '../../entities/history/audit.ts';
import type { EventType, ResourceType } from '../../entities/history/event.ts';
import { record } from '../../entities/history/record.ts';
import { idFloor, isId } from '../../entities/ids.ts';
import { log } from '../../entities/monitoring/log.ts';
import type { CountUnpaid } from './payers.ts';
import { Shares } from './shares.ts';

/** A refused use of a credential, or a refused login. */
export interface Attack {
  type: EventType;
  /** The id of the account, `operator`, or the email of a login. An email without an account counts as unknown. */
  account: string;
  /** The address of the caller, if it is known. Entries of accounts that never paid count for its network. */
  address: string | null;
  /** The credential. Absent: the account. */
  resource?: { type: ResourceType; id: string };
  /** Default: the system, because the caller is a stranger. */
  actor?: Actor;
}

/** An attack whose next entry may come when ten minutes are over. */
interface Window {
  attack: Attack;
  /** How often it came since its last entry. */
  count: number;
  timer: NodeJS.Timeout;
}

/** The events of refused logins, by the error. */
const LOGIN_EVENTS: Partial<Record<ErrorCode, EventType>> = {
  invalid_login: 'session.login_failed',
  wrong_password: 'session.login_failed',
  invalid_totp: 'session.code_failed',
  login_throttled: 'session.login_throttled',
};
/** The events of attacks, and of openings of invitations. */
export const SECURITY_EVENTS: ReadonlySet<string> = new Set<EventType>([
  ...Object.values(LOGIN_EVENTS),
  ...(['session.refused', 'session.network_refused', 'api_key.refused', 'api_key.network_refused'] as const),
  ...(['oauth_client.refused', 'oauth_client.network_refused'] as const),
  ...(['operator.refused', 'operator.invitation_opened'] as const),
]);
/** A second more than the time between two entries, so that the earlier one is old enough. */
const WINDOW_MS = 601_000;
const MINUTE_MS = 60_000;
/** The most windows at once. */
const WINDOWS_MAX = 10_000;
/** The entries of an account in an hour. */
const ENTRIES_PER_HOUR = 30;
/**
 * The entries of an hour that may name a credential, and the windows for credentials. Beyond them, one window for each kind
 * counts attacks on all others. So a flood on many credentials leaves entries for each other kind.
 */
const NAMED_MAX = 20;

/** The same attack on the whole account. */
const unnamed = ({ type, account, address }: Attack): Attack => ({ type, account, address });

const keyOf = ({ type, resource }: Attack) => `${type} ${resource?.id ?? ''}`;

/** The counts for the operator, in the words of the log. */
type Counted =
  | 'logins with unknown names'
  | 'unknown credentials'
  | 'unknown or used invitations'
  | 'ended sessions of operators'
  | 'attacks beyond the memory of the log'
  | 'attacks beyond the limit of their address';

export class SecurityLog {
  readonly #db: Database;
  readonly #countUnpaid: CountUnpaid;
  /** The windows of each attacked account or email. */
  readonly #windows = new Shares<Window>(WINDOWS_MAX);
  readonly #counts = new Map<Counted, number>();
  #printing: NodeJS.Timeout | undefined;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(db: Database, countUnpaid: CountUnpaid) {
    this.#db = db;
    this.#countUnpaid = countUnpaid;
  }

  /** Notes a refused login. @param name the email of the account, or its id */
  login(name: string, code: ErrorCode, address: string | null): void {
    const type = LOGIN_EVENTS[code];
    if (type) this.note({ type, account: name, address });
  }

  /** Notes a refused sign-in of an operator, a refused token, or the opening of an invitation. */
  operator(type: 'operator.refused' | 'operator.invitation_opened', id: string, address: string | null): void {
    this.note({ type, account: OPERATOR_ACCOUNT, address, resource: { type: 'operator', id } });
  }

  /** Notes an attack. The entry follows after the answer, so the answer takes as long as for an unknown name. */
  note(attack: Attack): void {
    this.#add(attack, 1);
  }

  #add(attack: Attack, count: number): void {
    const { account, resource } = attack;
    const known = this.#windows.get(account, keyOf(attack));
    if (known) known.count += count;
    else if (resource && this.#windows.sizeOf(account) >= NAMED_MAX) this.#add(unnamed(attack), count);
    else {
      const window: Window = { attack, count, timer: setTimeout(() => this.#close(window), WINDOW_MS).unref() };
      const removed = this.#windows.add(account, keyOf(attack), window);
      if (removed) this.#abandon(removed);
      this.#write(window);
    }
  }

  /** Counts an attack on no account. A line of the log has the counts of a minute. */
  count(what: Counted, times = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + times);
    this.#printing ??= setTimeout(() => this.#print(), MINUTE_MS).unref();
  }

  /** Writes what the windows have counted, as far as their entries are ten minutes old. */
  async flush(): Promise<void> {
    await this.#writing;
    for (const window of this.#windows.all()) this.#close(window);
    await this.#writing;
    for (const window of this.#windows.all()) this.#forget(window);
    if (this.#printing) this.#print();
  }

  /** Ends a window without further attacks, or else begins the next one. */
  #close(window: Window): void {
    if (!window.count) this.#forget(window);
    else {
      clearTimeout(window.timer);
      window.timer = setTimeout(() => this.#close(window), WINDOW_MS).unref();
      this.#write(window);
    }
  }

  #forget(window: Window): void {
    clearTimeout(window.timer);
    this.#windows.remove(window.attack.account, keyOf(window.attack), window);
  }

  /** Ends a window that gave room. The operator's counts get the attacks that no entry has. */
  #abandon(window: Window): void {
    clearTimeout(window.timer);
    this.#writing = this.#writing.then(() => {
      if (window.count) this.count('attacks beyond the memory of the log', window.count);
    });
  }

  #write(window: Window): void {
    this.#writing = this.#writing
      .then(() => forAllCallers(() => this.#record(window)))
      .catch((error: unknown) => process.emitWarning(error instanceof Error ? error.message : String(error)));
  }

  async #record(window: Window): Promise<void> {
    const { type, account, resource, address, actor = SYSTEM } = window.attack;
    const isAccount = account === OPERATOR_ACCOUNT || isId('acct', account);
    const accountId = isAccount ? account : (await find(this.#db, Account, { email: account }))?.id;
    const { count } = window;
    if (!accountId) {
      // Names without an account must not use up the windows.
      this.#forget(window);
      return this.count('logins with unknown names', count);
    }
    const { type: noun, id } = resource ?? { type: 'account' as const, id: accountId };
    if (accountId !== OPERATOR_ACCOUNT && !(await this.#hasRoom(accountId, address))) {
      // The next attack may come from an address with room.
      this.#forget(window);
      return this.count('attacks beyond the limit of their address', window.count);
    }
    const outcome = await this.#db.transaction(async (tx) => {
      await LOCK_NAME.all(tx, [`security ${accountId}`]);
      const since = (minutes: number) => idFloor('aud', Date.now() - (minutes + 1) * MINUTE_MS);
      if (await FIND_RECENT_ENTRY.first(tx, [accountId, type, id, since(10)])) return 'early';
      const { entries } = (await COUNT_RECENT_ENTRIES.first(tx, [accountId, [...SECURITY_EVENTS], since(60)]))!;
      if (resource && entries >= NAMED_MAX) return 'unnamed';
      if (entries >= ENTRIES_PER_HOUR) return 'early';
      await record(tx, accountId, id, { type, resource: noun, actor, data: { count } });
      return 'written';
    });
    if (outcome === 'early') return;
    window.count -= count;
    if (outcome === 'unnamed') this.#add(unnamed(window.attack), count);
  }

  /** Whether an account that never paid may have another entry. */
  #hasRoom(accountId: string, address: string | null): Promise<boolean> {
    return this.#countUnpaid(accountId, address, 'refusal').then(
      () => true,
      (error) => {
        if (error instanceof ApiError && error.code === 'rate_limited') return false;
        throw error;
      },
    );
  }

  #print(): void {
    clearTimeout(this.#printing);
    this.#printing = undefined;
    const counts = [...this.#counts].map(([what, times]) => `${times} ${what}`);
    this.#counts.clear();
    log.info(`Refused in the last minute: ${counts.join(', ')}.`);
  }
}
