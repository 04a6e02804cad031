/** Callers share an answer, and no caller waits for the turn of another. */
import { describe, expect, it } from 'vitest';
import { forAllCallers, onBehalfOfStranger } from '../../../entities/caller.ts';
import { readOperations } from '../../../facades/compile/read.ts';
import { runner } from '../../../facades/compile/run.ts';
import { ApiError, schema } from '../../../schema/index.ts';
import { newDatabase } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { queriesOf } from '../../setup/queries.ts';
import { contextOf, openShop } from '../../setup/shop.ts';

const db = await newDatabase(atEnd, { poolSize: 8 });
const shop = await openShop(atEnd, { db });
const directory = readOperations(schema).find(
  ({ http }) => http?.path === '/v1/agents/directory' && http.sharedSeconds,
)!;
const search = runner(directory, () => new ApiError('validation_failed'));
const callBy = (address: string, q: string, signal = new AbortController().signal) =>
  search({ q }, undefined, { ...contextOf(shop, ''), viewer: null, address, signal });
/** Holds all places of an address in the pool until the returned function is called. */
async function busy(address: string): Promise<() => Promise<unknown>> {
  const lock = 7_000_000 + Math.floor(Math.random() * 1_000_000);
  const held = Promise.withResolvers<void>();
  const holder = db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lock]);
    await held.promise;
  });
  const waits = async () => {
    const [row] = await db.query<{ count: number }>(
      `select count(*)::int as count from pg_locks where locktype = 'advisory' and objid = $1`,
      [lock],
    );
    return row!.count;
  };
  await eventually(async () => (await waits()) === 1);
  const calls = Array.from({ length: 4 }, () =>
    onBehalfOfStranger(address, () =>
      db.query('select pg_advisory_lock_shared($1), pg_advisory_unlock_shared($1)', [lock]),
    ),
  );
  await eventually(() => forAllCallers(async () => (await waits()) >= 3));
  return () => {
    held.resolve();
    return Promise.all([holder, ...calls]);
  };
}

describe('The catalog', () => {
  const paths = ['', '/vps', '/dedicated', '/bastions', '/images', '/{code}'].map((rest) => `/v1/catalog${rest}`);

  it.each(paths)('at %s costs one read for callers of many accounts', async (path) => {
    const operation = readOperations(schema).find(({ http }) => http?.path === path)!;
    const read = runner(operation, () => new ApiError('validation_failed'));
    const answers = new Set<unknown>();
    const queries = await queriesOf(db, async () => {
      for (let i = 0; i < 5; i++) answers.add(await read({ code: 'vps-1' }, undefined, contextOf(shop, `acct_${i}`)));
    });
    expect(answers.size).toBe(1);
    const groups = path === '/v1/catalog' ? 4 : 1;
    expect(queries.filter(({ text }) => /\bfrom catalog_item\b/.test(text))).toHaveLength(groups);
  });
});

describe('A shared answer', () => {
  it('comes to others while the first caller waits for its turn, and then to that one', async () => {
    const end = await busy('192.0.2.1');
    const first = callBy('192.0.2.1', 'turns');
    const late = new Promise((done) => setTimeout(done, 60_000, 'late').unref());
    const other = await Promise.race([callBy('192.0.2.2', 'turns'), late]);
    expect(other).toMatchObject({ data: [] });
    expect(await Promise.race([first, late])).toBe(other);
    expect(await callBy('192.0.2.1', 'turns')).toBe(other);
    await end();
  });

  it('costs one read for callers of one address at once, and for callers of others afterwards', async () => {
    const queries = await queriesOf(db, async () => {
      await Promise.all(Array.from({ length: 5 }, () => callBy('192.0.2.3', 'once')));
      for (let i = 10; i < 15; i++) await callBy(`192.0.2.${i}`, 'once');
    });
    expect(queries.filter(({ text }) => /\bfrom agent\b/.test(text))).toHaveLength(1);
  });

  it('is read again after a failure', async () => {
    const fill = Array.from({ length: 250 }, () =>
      onBehalfOfStranger('192.0.2.4', () => db.query('select pg_sleep(0.01)')),
    );
    const all = Promise.allSettled(fill);
    await expect(callBy('192.0.2.4', 'failure')).rejects.toMatchObject({ extensions: { code: 'rate_limited' } });
    await all;
    expect(await callBy('192.0.2.4', 'failure')).toMatchObject({ data: [] });
  });
});
