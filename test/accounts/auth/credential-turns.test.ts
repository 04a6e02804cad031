/** Guessed credentials cost a lookup each. */
import { describe, expect, it } from 'vitest';
import { onBehalfOfStranger } from '../../../entities/caller.ts';
import { mintCredential } from '../../../entities/secrets.ts';
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
