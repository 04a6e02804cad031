import type { EntityManager } from 'typeorm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Bus } from '../../../entities/database/bus.ts';
import { type CredentialEnd, onCredentialEnd } from '../../../resolvers/accounts/auth/credential-end.ts';

const DAY_MS = 24 * 3_600_000;

// Only the date is false. Timers of other files in this process would otherwise run for 60 days.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

/** The timer that the watch has set, until it ends or is cleared. */
let pending: { next: () => void; at: number } | undefined;

/** Runs the watch's own code, which sets and clears its timer at once. */
function watching<T>(run: () => T): T {
  const set = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((next: () => void, ms: number) => {
    pending = { next, at: Date.now() + ms };
    return { unref: () => undefined };
  }) as never);
  const clear = vi.spyOn(globalThis, 'clearTimeout').mockImplementation(() => {
    pending = undefined;
  });
  try {
    return run();
  } finally {
    set.mockRestore();
    clear.mockRestore();
  }
}

/** Lets time pass, with the timers of the watch that are due. */
function pass(ms: number): void {
  const end = Date.now() + ms;
  for (let due = pending; due && due.at <= end; due = pending) {
    pending = undefined;
    vi.setSystemTime(due.at);
    watching(due.next);
  }
  vi.setSystemTime(end);
}

function watched(expiresAt: Date | null) {
  const heard: CredentialEnd[] = [];
  const bus = new Bus('postgres://127.0.0.1/none');
  // No database answers. So the check of an earlier end never ends.
  const db = { bus, query: () => new Promise<never>(() => {}), manager: {} as EntityManager };
  const viewer = { accountId: 'acct_1', kind: 'api_key', credentialId: 'key_1', name: null } as const;
  const { forget } = watching(() =>
    onCredentialEnd(db, { ...viewer, scopes: new Set(), expiresAt }, (how) => heard.push(how)),
  );
  return { heard, bus, forget: () => watching(forget) };
}

it('A credential ends when it expires, also when that is later than a timer can wait', () => {
  const { heard } = watched(new Date(Date.now() + 60 * DAY_MS));
  pass(60 * DAY_MS - 1_000);
  expect(heard).toEqual([]);
  pass(1_000);
  expect(heard).toEqual(['ended']);
});

it('A credential that is watched no more ends unheard', () => {
  const { heard, forget } = watched(new Date(Date.now() + 60 * DAY_MS));
  pass(30 * DAY_MS);
  forget();
  pass(40 * DAY_MS);
  expect(heard).toEqual([]);
});

it('Its end is unknown if any row may have changed, and known if the change names its account', async () => {
  const { heard, bus } = watched(null);
  // A closed bus tells only its own process.
  await bus.close();
  const deliver = (accountId: string, id: string | null) => bus.publish([{ kind: 'credential', accountId, id }]);
  deliver('', null);
  deliver('acct_1', null);
  deliver('acct_1', 'key_2');
  deliver('acct_1', 'key_1');
  expect(heard).toEqual(['unknown', 'ended', 'ended']);
});
