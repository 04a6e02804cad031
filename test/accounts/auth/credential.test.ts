import type { EntityManager } from 'typeorm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Bus } from '../../../entities/database/bus.ts';
import { type CredentialEnd, onCredentialEnd } from '../../../resolvers/accounts/auth/credential-end.ts';

const DAY_MS = 24 * 3_600_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watched(expiresAt: Date | null) {
  const heard: CredentialEnd[] = [];
  const bus = new Bus('postgres://127.0.0.1/none');
  // No database answers. So the check of an earlier end never ends.
  const db = { bus, query: () => new Promise<never>(() => {}), manager: {} as EntityManager };
  const viewer = { accountId: 'acct_1', kind: 'api_key', credentialId: 'key_1', name: null } as const;
  const { forget } = onCredentialEnd(db, { ...viewer, scopes: new Set(), expiresAt }, (how) => heard.push(how));
  return { heard, bus, forget };
}

it('A credential ends when it expires, also when that is later than a timer can wait', async () => {
  const { heard } = watched(new Date(Date.now() + 60 * DAY_MS));
  await vi.advanceTimersByTimeAsync(60 * DAY_MS - 1_000);
  expect(heard).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(heard).toEqual(['ended']);
});

it('A credential that is watched no more ends unheard', async () => {
  const { heard, forget } = watched(new Date(Date.now() + 60 * DAY_MS));
  await vi.advanceTimersByTimeAsync(30 * DAY_MS);
  forget();
  await vi.advanceTimersByTimeAsync(40 * DAY_MS);
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
