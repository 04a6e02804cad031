/**
 * The operations under way on the internal listener, over HTTP, SSE and WebSocket. An account has few at once, and all accounts
 * together have some more. Others wait for their turn. The operator waits for no turn.
 */
import {
  type ExecutionArgs,
  type ExecutionResult,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import { apiErrorOf, atTurnOf, Ceiling, type Context, readAtTurnOf, Turns, type Viewer } from '../../schema/index.ts';
import { type OnAnswer, type OpenSpan, withinSpan } from '../compile/run.ts';
import { CHANGE_VALUES_MAX, refuseHeavy, weightOf } from './document-size.ts';

/** The most operations of an account that run or wait. Each keeps its document in memory. */
const OPERATIONS_MAX = 32;
/** The operations that run at once: of all accounts, and of one. */
const [PLACES, PLACES_OF_ACCOUNT] = [12, 4];
const WAITING_MAX = 1_000;
/** The time after which an operation gives its place to others. It waits for a server then, and needs little. */
const PLACE_MS = 2_000;
const TOO_MANY = `Your account has ${OPERATIONS_MAX} operations under way. Wait until one ends.`;

/** Counts calls of a caller, and those among them that change something. @throws ApiError rate_limited */
export type AdmitCalls = (viewer: Viewer, address: string | null, calls?: number, changes?: number) => Promise<void>;

export class Operations {
  readonly #admit: AdmitCalls;
  readonly #onAnswer: OnAnswer | undefined;
  readonly #openSpan: OpenSpan | undefined;
  readonly #ceiling = new Ceiling(OPERATIONS_MAX, TOO_MANY, 1);
  readonly #turns = new Turns({
    ...{ places: PLACES, placesOfGroup: PLACES_OF_ACCOUNT, waiting: WAITING_MAX, waitingOfGroup: OPERATIONS_MAX },
    refusal: 'Too many operations wait. Send it again later.',
  });

  /** @param onAnswer hears of queries and mutations */
  constructor(admit: AdmitCalls, onAnswer?: OnAnswer, openSpan?: OpenSpan) {
    this.#admit = admit;
    this.#onAnswer = onAnswer;
    this.#openSpan = openSpan;
  }

  /**
   * Waits for the turn of the caller.
   * @param signal ends the wait
   * @returns a function that ends the operation
   * @throws ApiError rate_limited
   */
  async begin({ accountId }: Viewer, signal: AbortSignal): Promise<() => void> {
    if (!accountId) return () => {};
    const end = this.#ceiling.enter(accountId);
    try {
      const leave = once(await this.#turns.enter(accountId, signal));
      const timer = setTimeout(leave, PLACE_MS).unref();
      return () => {
        clearTimeout(timer);
        leave();
        end();
      };
    } catch (error) {
      end();
      throw error;
    }
  }

  /**
   * Weighs an operation that the service has counted as one call, and runs it. The operator asks for as much as documents may.
   * @throws ApiError rate_limited if the caller has too few calls left, and GraphQLError if the operation is too heavy
   */
  async run<Result>(args: ExecutionArgs, execute: (args: ExecutionArgs) => Result): Promise<Awaited<Result>> {
    const context = args.contextValue as Context;
    const { viewer, address } = context;
    const [startedAt, span] = [performance.now(), this.#openSpan?.()];
    const operation = getOperationAST(args.document, args.operationName);
    const kind = operation?.operation;
    if (viewer?.accountId) {
      const weight = weightOf(args);
      refuseHeavy(weight, kind === OperationTypeNode.SUBSCRIPTION ? CHANGE_VALUES_MAX : undefined);
      await this.#admit(viewer, address, weight.roots - 1, kind === OperationTypeNode.MUTATION ? weight.roots : 0);
    }
    const atTurn = kind === OperationTypeNode.QUERY ? readAtTurnOf : atTurnOf;
    const work = () => atTurn(context, (contextValue) => execute({ ...args, contextValue }));
    const result = await withinSpan(span, work);
    if (operation && kind !== OperationTypeNode.SUBSCRIPTION)
      this.#onAnswer?.({
        ...{ facade: 'graphql', operation: rootOf(operation), status: statusOf(result as ExecutionResult) },
        ...{ ms: performance.now() - startedAt, requestId: context.requestId, span },
      });
    return result;
  }
}

/** The root field of an operation, or `several`. */
function rootOf({ selectionSet: { selections } }: OperationDefinitionNode): string {
  const [first] = selections;
  return selections.length === 1 && first?.kind === 'Field' ? first.name.value : 'several';
}

/** The status that REST would give to the first error. */
function statusOf({ errors }: ExecutionResult): number {
  const [first] = errors ?? [];
  if (!first) return 200;
  const isInputWrong = first.originalError === undefined;
  return Number(apiErrorOf(first)?.extensions.status ?? (isInputWrong ? 400 : 500));
}

/** Returns a function that does the work at its first call only. */
function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}
