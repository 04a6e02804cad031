/**
 * The turns of callers at the event loop. Some calls need no query and milliseconds of the processor, such as the refusal of many
 * unknown fields. A flood of them would delay everybody. So requests begin at once only for the first millisecond of a round of
 * the loop. Each later round begins one of the others, where accounts and sites take turns. A body waits unread for its turn.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { freeSiteOf, restOfRound, Turns } from '../../schema/index.ts';
import { disconnectOf } from '../http/connections.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Waits for its turn. Null once it has begun. */
    turn: (() => Promise<void> | undefined) | null;
  }
}

/** The time of a round in which requests begin, in milliseconds. The last one may take longer. */
const ROUND_MS = 1;

/** Lets the requests of the app begin at their turns. Its parsers are made by `readingAtTurn`. */
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
    const leave = await turns.enter(groupOf(request), disconnectOf(reply.raw));
    void restOfRound().then(leave);
  };
  app.decorateRequest('turn', null);
  app.addHook('preParsing', (request, reply, _, done) => {
    request.turn = () => (turns.waiting || isSpent() ? turn(request, reply) : undefined);
    done();
  });
  app.addHook('preValidation', (request, _, done) => {
    const wait = begin(request);
    if (!wait) return done();
    wait.then(() => done(), done);
  });
}

/** Returns a parser for the content type of an app that takes turns. It reads an arrived body at the turn of its request. */
export const readingAtTurn =
  (read: (body: Buffer) => unknown) =>
  async (request: FastifyRequest, body: Buffer): Promise<unknown> => {
    await begin(request);
    return read(body);
  };

/** Begins a request at its turn. Undefined if it has begun. */
function begin(request: FastifyRequest): Promise<void> | undefined {
  const { turn } = request;
  request.turn = null;
  return turn?.();
}

/** The account of a caller who has paid, or the site of another. */
const groupOf = ({ viewer, ip }: FastifyRequest): string =>
  viewer?.accountId && viewer.isUnpaid === false ? viewer.accountId : freeSiteOf(ip);
