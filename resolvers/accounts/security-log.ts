/**
 * Records attacks for the owner of an account, as audit entries and as events for webhooks. No address is in them. A flood
 * makes at most one entry a minute for each kind and credential, also across processes. The entry counts what came since the
 * entry before. Attacks on no account leave counts in the log of the service alone. An account has a share of the memory, so
 * a flood on one account silences the log of no other.
 */
import { Account } from '../../entities/accounts/account.ts';
import { forAllCallers } from '../../entities/caller.ts';
import type { Database } from '../../entities/database/database.ts';
import { LOCK_NAME } from '../../entities/database/lock-name.ts';
import { find } from '../../entities/database/table.ts';
import type { ErrorCode } from '../../entities/errors.ts';
import { type Actor, FIND_RECENT_ENTRY, SYSTEM } from '../../entities/history/audit.ts';
import type { EventType, ResourceType } from '../../entities/history/event.ts';
import { record } from '../../entities/history/record.ts';
import { idFloor, isId } from '../../entities/ids.ts';
import { Shares } from './shares.ts';

/** A refused use of a credential, or a refused login. */
export interface Attack {
  type: EventType;
  /** The id of the account, or the email of a login. An email without an account counts as unknown. */
  account: string;
  /** The credential. Absent: the account. */
  resource?: { type: ResourceType; id: string };
  /** Default: the system, because the caller is a stranger. */
  actor?: Actor;
}

/** An attack whose next entry may come when the minute is over. */
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
/** The events of attacks. */
export const SECURITY_EVENTS: ReadonlySet<string> = new Set<EventType>([
  ...Object.values(LOGIN_EVENTS),
  ...(['session.refused', 'session.network_refused', 'api_key.refused', 'api_key.network_refused'] as const),
  ...(['oauth_client.refused', 'oauth_client.network_refused'] as const),
]);
/** A second more than the minute between two entries, so that the earlier one is old enough. */
const WINDOW_MS = 61_000;
const MINUTE_MS = 60_000;
/** The most windows at once. */
const WINDOWS_MAX = 10_000;
/** The windows that an account has for its credentials. Beyond them, one window for each kind counts attacks on all others. */
const WINDOWS_OF_ACCOUNT_MAX = 100;

const keyOf = ({ type, resource }: Attack) => `${type} ${resource?.id ?? ''}`;

/** The counts for the operator, in the words of the log. */
type Counted = 'logins with unknown names' | 'unknown credentials' | 'attacks beyond the memory of the log';

export class SecurityLog {
  readonly #db: Database;
  /** The windows of each attacked account or email. */
  readonly #windows = new Shares<Window>(WINDOWS_MAX);
  readonly #counts = new Map<Counted, number>();
  #printing: NodeJS.Timeout | undefined;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Notes a refused login. @param name the email of the account, or its id */
  login(name: string, code: ErrorCode): void {
    const type = LOGIN_EVENTS[code];
    if (type) this.note({ type, account: name });
  }

  /** Notes an attack. The entry follows after the answer, so the answer takes as long as for an unknown name. */
  note(attack: Attack): void {
    const { type, account, resource } = attack;
    const known = this.#windows.get(account, keyOf(attack));
    if (known) known.count++;
    else if (resource && this.#windows.sizeOf(account) >= WINDOWS_OF_ACCOUNT_MAX) this.note({ type, account });
    else {
      const window: Window = { attack, count: 1, timer: setTimeout(() => this.#close(window), WINDOW_MS).unref() };
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

  /** Writes what the minutes under way have counted, as far as their entries are a minute old. */
  async flush(): Promise<void> {
    await this.#writing;
    for (const window of this.#windows.all()) this.#close(window);
    await this.#writing;
    for (const window of this.#windows.all()) this.#forget(window);
    if (this.#printing) this.#print();
  }

  /** Ends a window without further attacks, or else begins the next minute. */
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
    const { type, account, resource, actor = SYSTEM } = window.attack;
    const accountId = isId('acct', account) ? account : (await find(this.#db, Account, { email: account }))?.id;
    const { count } = window;
    if (!accountId) {
      // Names without an account must not use up the windows.
      this.#forget(window);
      return this.count('logins with unknown names', count);
    }
    const { type: noun, id } = resource ?? { type: 'account' as const, id: accountId };
    const isWritten = await this.#db.transaction(async (tx) => {
      await LOCK_NAME.all(tx, [`security ${accountId}`]);
      const recent = idFloor('aud', Date.now() - 2 * MINUTE_MS);
      if (await FIND_RECENT_ENTRY.first(tx, [accountId, type, id, recent])) return false;
      await record(tx, accountId, id, { type, resource: noun, actor, data: { count } });
      return true;
    });
    if (isWritten) window.count -= count;
  }

  #print(): void {
    clearTimeout(this.#printing);
    this.#printing = undefined;
    const counts = [...this.#counts].map(([what, times]) => `${times} ${what}`);
    this.#counts.clear();
    console.log(`Refused in the last minute: ${counts.join(', ')}.`);
  }
}
