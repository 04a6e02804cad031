/**
 * The turns of large answers at the event loop. GraphQL and JSON take up to twenty milliseconds for one, which no other call gets
 * meanwhile. So accounts and sites take turns with them, and between two the loop has rounds for others. An account makes two
 * calls of a field with large answers at once. So callers who go before their answer make the service read no more of them.
 */
import { setImmediate as nextRound } from 'node:timers/promises';
import { Turns } from '../entities/turns.ts';
import { type Context, turnOf } from './context.ts';

/** The characters of a large answer, where each value counts a few. It takes two milliseconds or more. */
const LARGE = 128 * 1024;
const VALUE = 50;
/** The rows of an array whose size counts. */
const SAMPLE = 16;
/** How deep the rows of an answer are. */
const DEPTH_MAX = 6;
/** After so long without a large answer, an account makes all its calls of the field at once again. */
const REMEMBERED_MS = 10_000;
const REMEMBERED_MAX = 10_000;
/** The rounds of the loop for each millisecond of work at a turn. Node accepts one connection a round, also of other callers. */
const ROUNDS_A_MS = 2;

const LIMITS = {
  waiting: 20_000,
  waitingOfGroup: 2_000,
  refusal: 'Too many large answers wait. Send fewer calls at a time.',
};
const answers = new Turns({ ...LIMITS, places: 1 });
const calls = new Turns({ ...LIMITS, places: Number.POSITIVE_INFINITY, placesOfGroup: 2 });
/** When each account last had a large answer of a field, the oldest first. By the monotonic clock. */
const lastOf = new Map<string, number>();

/**
 * Reads an answer. A large one waits for its turn, and its caller renders it before the loop goes on.
 * @throws ApiError rate_limited if too many wait, unavailable if the caller has gone, or the error of the read
 */
export async function atTurnOfAnswer<T>(context: Context, field: string, read: () => T | Promise<T>): Promise<T> {
  const { viewer, signal } = context;
  const group = turnOf(context);
  const asked = `${viewer?.accountId ?? group} ${field}`;
  const isLarge = performance.now() - (lastOf.get(asked) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS;
  const end = isLarge ? await calls.enter(asked, signal) : undefined;
  try {
    const answer = await read();
    if (sizeOf(answer) < LARGE) return answer;
    remember(asked);
    // A caller who has gone still waits, or else each further one would begin at once.
    const leave = await answers.enter(group);
    void restOfRound().then(leave);
    return answer;
  } finally {
    end?.();
  }
}

function remember(asked: string): void {
  lastOf.delete(asked);
  lastOf.set(asked, performance.now());
  if (lastOf.size > REMEMBERED_MAX) lastOf.delete(lastOf.keys().next().value!);
}

/** About how many characters a value has as JSON. A few rows of many stand for all, because the look costs time, too. */
function sizeOf(value: unknown, depth = 0): number {
  if (typeof value === 'string') return value.length + VALUE;
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || depth === DEPTH_MAX) return VALUE;
  let size = VALUE;
  if (Array.isArray(value)) {
    const step = Math.ceil(value.length / SAMPLE);
    for (let i = Math.floor(Math.random() * step); i < value.length; i += step)
      size += step * sizeOf(value[i], depth + 1);
  } else for (const key in value) size += sizeOf((value as Record<string, unknown>)[key], depth + 1);
  return size;
}

/** Waits until the round of the loop is over. After a long one, leaves further rounds for as long again. */
export async function restOfRound(): Promise<void> {
  const began = performance.now();
  await nextRound();
  const [ended, spent] = [performance.now(), performance.now() - began];
  for (let rounds = spent * ROUNDS_A_MS; rounds >= 1 && performance.now() - ended < spent; rounds--) await nextRound();
}
