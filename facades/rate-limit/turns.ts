/**
 * The turns of callers at the event loop. Some calls need no query and milliseconds of the processor, such as the refusal of many
 * unknown fields. A flood of them would delay everybody. So requests begin at once only for the first millisecond of a round of
 * the loop. Each later round begins one of the others, where accounts and sites take turns.
 */
import { setImmediate as nextRound } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { freeSiteOf, Turns } from '../../schema/index.ts';

/** The time of a round in which requests begin, in milliseconds. The last one may take longer. */
const ROUND_MS = 1;
/** The rounds that follow each millisecond of a request at its turn. Node accepts one connection a round, also of other callers. */
const ROUNDS_A_MS = 2;

/** Lets the requests of the app begin at their turns, after their bodies have come. */
export function takeTurns(app: FastifyInstance): void {
  const turns = new Turns({
    ...{ places: 1, waiting: 20_000, waitingOfGroup: 2_000 },
    refusal: 'Too many requests wait. Send fewer at a time.',
  });
  /** When the first request of this round began. */
  let began: number | undefined;
  const isSpent = (): boolean => {
    const now = performance.now();
    if (began === undefined) {
      began = now;
      setImmediate(() => (began = undefined));
    }
    return now - began > ROUND_MS;
  };
  const turn = async (request: FastifyRequest, reply: FastifyReply) => {
    const leave = await turns.enter(groupOf(request), goneFrom(reply));
    void rest().then(leave);
  };
  app.addHook('preValidation', (request, reply, done) => {
    if (!turns.waiting && !isSpent()) return done();
    turn(request, reply).then(() => done(), done);
  });
}

/** Waits until the round is over, and further ones for a long round. */
async function rest(): Promise<void> {
  const began = performance.now();
  await nextRound();
  for (let rounds = (performance.now() - began) * ROUNDS_A_MS; rounds >= 1; rounds--) await nextRound();
}

/** The account of a caller who has paid, or the site of another. */
const groupOf = ({ viewer, ip }: FastifyRequest): string =>
  viewer?.accountId && viewer.isUnpaid === false ? viewer.accountId : freeSiteOf(ip);

/** Aborts when the caller has gone. */
function goneFrom({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  return gone.signal;
}
