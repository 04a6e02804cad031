/** Networks take turns with password checks. The work of these tests ends when they say so. */
import { describe, expect, it } from 'vitest';
import { Turns } from '../../../resolvers/accounts/auth/turns.ts';

/** A single place. Returns the order in which works begin, and ends them one after the other. */
function onePlace(limits = { waiting: 8, ofNetwork: 4 }) {
  const turns = new Turns(1, limits);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (name: string, network = name.split(' ')[0]!) =>
    turns.run(network, () => {
      begun.push(name);
      return new Promise<string>((end) => ends.push(() => end(name)));
    });
  const end = async () => {
    ends.shift()?.();
    await new Promise(setImmediate);
  };
  return { ask, begun, end };
}
const REFUSED = { code: 'rate_limited' };

describe('A password check', () => {
  it('waits for one check of each other network, and for all of its own', async () => {
    const { ask, begun, end } = onePlace();
    const flood = ['a 1', 'a 2', 'a 3', 'a 4', 'b 1', 'b 2'].map((name) => ask(name));
    const other = ask('c 1');
    for (let i = 0; i < 7; i++) await end();
    expect(begun).toEqual(['a 1', 'a 2', 'b 1', 'c 1', 'a 3', 'b 2', 'a 4']);
    expect(await Promise.all([...flood, other])).toHaveLength(7);
    const later = ask('d 1');
    await end();
    expect(await later).toBe('d 1');
  });

  it('is refused if enough of its own network wait, while others still get their turn', async () => {
    const { ask, end } = onePlace();
    const waiting = ['a 1', 'a 2', 'a 3', 'a 4', 'a 5'].map((name) => ask(name));
    await expect(ask('a 6')).rejects.toMatchObject(REFUSED);
    const other = ask('b 1');
    for (let i = 0; i < 6; i++) await end();
    expect(await Promise.all([...waiting, other])).toHaveLength(6);
  });

  it('takes the place of the last of the longest queue if too many wait', async () => {
    const { ask, end } = onePlace({ waiting: 4, ofNetwork: 3 });
    const first = ask('a 1');
    const queued = ['a 2', 'a 3', 'a 4', 'b 1'].map((name) => ask(name).catch(({ code }) => code));
    const other = ask('c 1');
    expect(await queued[2]).toBe('rate_limited');
    await expect(ask('a 5')).rejects.toMatchObject(REFUSED);
    for (let i = 0; i < 5; i++) await end();
    expect(await Promise.all([first, ...queued, other])).toEqual(['a 1', 'a 2', 'a 3', 'rate_limited', 'b 1', 'c 1']);
  });

  it('gives its place back when it fails', async () => {
    const turns = new Turns(1, { waiting: 1, ofNetwork: 1 });
    const failing = turns.run('a', () => Promise.reject(new Error('no')));
    const next = turns.run('b', async () => 'done');
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('done');
  });
});
