/** Sends the answers of subscriptions to WebSockets. Watchers who share an answer share its text. */
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import { WebSocket } from 'ws';
import { watch } from '../compile/watchers.ts';
import type { Mask } from './errors.ts';
import { CHANGE_MAX, isTooLarge, tooLargeAnswer } from './limits.ts';

/** An answer as clients get it. */
interface Told {
  text: string;
  /** Whether changes may be lost, so that the client must subscribe again. */
  isLost: boolean;
}
const TOLD = new WeakMap<ExecutionResult, Told>();

/** Watches as `watch` does. An answer that is too large is an error. */
export const watchShort = (args: ExecutionArgs): ReturnType<typeof watch> =>
  watch(args, (answer) => (isTooLarge(answer.data, CHANGE_MAX) ? { errors: [tooLargeAnswer()] } : answer));

export interface Watcher {
  socket: WebSocket;
  /** The client's name for the subscription. */
  id: string;
  mask: Mask;
  /** Closes the socket of a client that must subscribe again. */
  lost(socket: WebSocket): void;
}

/**
 * Sends each answer, and waits until the system has taken it. A watcher who reads slowly hears of a row once meanwhile, and so
 * costs no memory. The library gets no answer, because it would render each.
 */
export function sending(answers: AsyncGenerator<ExecutionResult>, watcher: Watcher): AsyncGenerator<never> {
  const sent = send(answers, watcher);
  const leave = sent.return.bind(sent);
  // A generator that waits for an answer cannot return, so the wait ends first.
  sent.return = async (value) => {
    await answers.return(undefined);
    return leave(value);
  };
  return sent;
}

async function* send(
  answers: AsyncIterable<ExecutionResult>,
  { socket, id, mask, lost }: Watcher,
): AsyncGenerator<never> {
  const start = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
  for await (const answer of answers) {
    const { text, isLost } = toldBy(answer, mask);
    if (isLost) lost(socket);
    if (socket.readyState !== WebSocket.OPEN) return;
    await new Promise((resume) => socket.send(`${start}${text}}`, resume));
  }
}

function toldBy(answer: ExecutionResult, mask: Mask): Told {
  const known = TOLD.get(answer);
  if (known) return known;
  const masked = (answer.errors ?? []).map(mask);
  const shown = masked.length ? { ...answer, errors: masked } : answer;
  const isLost = masked.some(({ extensions }) => extensions.code === 'unavailable');
  const told = { text: JSON.stringify(shown), isLost };
  TOLD.set(answer, told);
  return told;
}
