/** Guessed credentials cost a lookup each. */
import { describe, expect, it } from 'vitest';
import { onBehalfOf, onBehalfOfStranger } from '../../../entities/caller.ts';
import { mintCredential } from '../../../entities/secrets.ts';
import { onCredentialEnd } from '../../../resolvers/accounts/auth/credential-end.ts';
import type { Viewer } from '../../../resolvers/context.ts';
import { startFreehold } from '../../setup/freehold.ts';

const { newAccount, publicUrl, db } = await startFreehold();

describe('The lookup of a credential', () => {
  it('waits for the turn of the strangers of its site, while an account gets its answers', async () => {
    const { rest } = await newAccount();
    await rest('GET', '/v1/account');
    const ended: string[] = [];
    const note = async (name: string, work: Promise<unknown>) => work.then(() => ended.push(name));
    const slow = () => onBehalfOfStranger('127.0.0.1', () => db.query('select pg_sleep(4)'));
    const guess = { authorization: `Bearer ${mintCredential('live')}` };
    await Promise.all([
      ...Array.from({ length: 6 }, () => note('slow', slow())),
      note('guess', fetch(`${publicUrl}/v1/account`, { headers: guess })),
      note('account', rest('GET', '/v1/account/balance')),
    ]);
    expect(ended.slice(0, 2)).toEqual(['account', 'slow']);
  });
});

describe('The check of a credential at the beginning of a session', () => {
  it('waits for the turn of its account, while another account gets its answers', async () => {
    const [busy, other] = [await newAccount(), await newAccount()];
    await other.rest('GET', '/v1/account');
    const ended: string[] = [];
    const note = async (name: string, work: Promise<unknown>) => work.then(() => ended.push(name));
    const slow = () => onBehalfOf({ kind: 'account', group: busy.id }, () => db.query('select pg_sleep(4)'));
    const viewer = { kind: 'session', credentialId: 'tok_1', accountId: busy.id, scopes: [] } as unknown as Viewer;
    const slowOnes = Array.from({ length: 6 }, () => note('slow', slow()));
    const watch = onCredentialEnd(db, viewer, () => {});
    await Promise.all([
      ...slowOnes,
      note('check', watch.checked),
      note('other', other.rest('GET', '/v1/account/balance')),
    ]);
    watch.forget();
    expect(ended.slice(0, 2)).toEqual(['other', 'slow']);
  });
});
