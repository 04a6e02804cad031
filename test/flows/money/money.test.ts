/** After a random walk through a hosting company, every paid coin is where it belongs. */
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { say } from '../../setup/say.ts';
import {
  proveCovered,
  proveHeld,
  provePositive,
  proveRefunds,
  proveSettled,
  proveSolvent,
  summarize,
} from './proofs.ts';
import { STEP } from './step.ts';
import { openTown } from './town.ts';
import { comeToRest, take } from './walk.ts';
import { work } from './worker.ts';

const STEPS = Number(process.env.MONEY_STEPS ?? 400);
const SEED = Number(process.env.MONEY_SEED ?? Date.now() % 1e9);
/** The steps between two proofs of the whole. */
const PROOF_STEPS = 200;
/** A walk of so many steps does each kind of step at least once. */
const LONG_STEPS = 10_000;
/** The steps after which coins may leave. */
const LEAVING = new Set(['payOut', 'sendBack', 'giveBack', 'broadcast', 'adjust']);

it(`${STEPS} random steps lose no coin, create none, and leave the service solvent at any moment`, async () => {
  say(`MONEY_STEPS=${STEPS} MONEY_SEED=${SEED} repeats this walk.`);
  const town = await openTown(onTestFinished);
  await work(town.shop);
  const taken: Record<string, { done: number; refused: number }> = {};
  let number = 0;
  for (const step of fc.sample(STEP, { numRuns: STEPS, seed: SEED })) {
    const isDone = await take(town, step);
    taken[step.kind] ??= { done: 0, refused: 0 };
    taken[step.kind]![isDone ? 'done' : 'refused']++;
    await provePositive(town);
    await proveRefunds(town);
    if (isDone && LEAVING.has(step.kind)) await proveCovered(town);
    if (++number % PROOF_STEPS === 0) await proveSolvent(town);
  }
  await comeToRest(town);
  await proveSolvent(town);
  await proveSettled(town);
  await proveHeld(town);
  say(JSON.stringify({ ...taken, ...(await summarize(town)) }));
  const neverDone = Object.keys(taken).filter((kind) => !taken[kind]!.done);
  // A short walk may miss some. A long one that never buys would prove little.
  if (STEPS >= LONG_STEPS) expect(neverDone).toEqual([]);
}, 1_800_000);
