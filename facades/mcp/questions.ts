/**
 * Questions of the clients of 2025 to their users. Their calls stay open for the answer. Such a call has done nothing yet, so
 * the service may end it at any time.
 */
import { SdkError, SdkErrorCode } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import { refusal } from '../compile/details.ts';

/** Seconds until a call without an answer ends. */
export const ANSWER_SECONDS = 120;
const PROCESS_MAX = 256;

/** A question whose answer is due. `abort` ends its call. */
export type Question = Pick<AbortController, 'abort'>;

interface Asker {
  /** The account or the network of the caller. */
  group: string;
  /** Receives the question while it waits. */
  ofSession: Set<Question> | undefined;
  /** Aborts when the client cancels the call. */
  call: AbortSignal;
}

const UNCHANGED = 'and the service changed nothing.';
const ROOM = `The service needed the room before the user answered, ${UNCHANGED} Call again.`;
const FAILED = `The client could not ask its user, ${UNCHANGED}`;
const LATE = `The user did not answer within ${ANSWER_SECONDS} seconds, ${UNCHANGED} Call again.`;

export class Questions {
  /** The oldest first. */
  readonly #waiting = new Map<Question, string>();

  /**
   * Waits for an answer. In a full process, the oldest question of the largest group gives room.
   * @throws ApiError unavailable if the question gave room or had no answer in time; validation_failed if the client refused it
   */
  async ask<T>({ group, ofSession, call }: Asker, send: (signal: AbortSignal) => Promise<T>) {
    if (this.#waiting.size >= PROCESS_MAX) this.#makeRoom();
    const question = new AbortController();
    call.addEventListener('abort', () => question.abort(), { once: true });
    if (call.aborted) question.abort();
    this.#waiting.set(question, group);
    ofSession?.add(question);
    try {
      return await send(question.signal);
    } catch (error) {
      if (question.signal.aborted) throw new ApiError('unavailable', ROOM);
      const isLate = error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
      if (isLate) throw new ApiError('unavailable', LATE);
      throw refusal([{ field: 'confirm', code: 'not_allowed', message: FAILED }]);
    } finally {
      this.#waiting.delete(question);
      ofSession?.delete(question);
    }
  }

  #makeRoom(): void {
    const groups = [...Map.groupBy(this.#waiting, ([, group]) => group).values()];
    const [largest] = groups.toSorted((a, b) => b.length - a.length);
    const [question] = largest![0]!;
    this.#waiting.delete(question);
    question.abort();
  }
}
