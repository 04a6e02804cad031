/**
 * Subscriptions. Watchers with the same view of a change share its answer. The service executes their document once for all of
 * them. Resolvers give such watchers the same object for a change (`resolvers/subscriptions.ts`).
 */
import { createHash } from 'node:crypto';
import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  executeSubscriptionEvent,
  mapSourceToResponseEvent,
  validateSubscriptionArgs,
} from 'graphql';
import type { Context, Viewer } from '../../schema/index.ts';

type Answer = ExecutionResult | Promise<ExecutionResult>;
/** The answers about each change, by view. */
const ANSWERS = new WeakMap<object, Map<string, Answer>>();
/** For so long, watchers share an answer. A slow watcher keeps its change for longer, and may not keep the answers of others. */
const SHARED_MS = 500;

/** Subscribes as `subscribe` of GraphQL does. @param shown the form of each answer for the watchers */
export async function watch(
  args: ExecutionArgs,
  shown: (answer: ExecutionResult) => ExecutionResult = (answer) => answer,
): Promise<AsyncGenerator<ExecutionResult> | ExecutionResult> {
  const valid = validateSubscriptionArgs(args);
  if (!('schema' in valid)) return { errors: valid };
  const changes = await createSourceEventStream(valid);
  if (!(Symbol.asyncIterator in changes)) return changes;
  const contextValue = sharedContext(args.contextValue as Context);
  const view = viewOf(args, contextValue.viewer);
  return mapSourceToResponseEvent({ ...valid, contextValue }, changes, (one) => {
    const change = one.rootValue as object;
    const answers = ANSWERS.get(change) ?? new Map<string, Answer>();
    ANSWERS.set(change, answers);
    const known = answers.get(view);
    if (known) return known;
    const executed = executeSubscriptionEvent(one);
    const answer = executed instanceof Promise ? executed.then(shown) : shown(executed);
    answers.set(view, answer);
    setTimeout(() => answers.delete(view), SHARED_MS).unref();
    return answer;
  });
}

/**
 * The context of an answer that watchers of one account share. It has nothing of a single one of them, so an answer cannot
 * depend on it. The audit log names each operator, so operators share with themselves only.
 */
function sharedContext(context: Context): Context {
  const viewer = context.viewer!;
  if (viewer.kind === 'operator') return context;
  const { accountId, kind, scopes } = viewer;
  const shared: Viewer = { accountId, kind, scopes, credentialId: '', name: null, expiresAt: null };
  const { signal: _, ...others } = context;
  return {
    ...others,
    ...{ viewer: shared, requestId: '', userAgent: null, address: null, host: undefined, setHeader: undefined },
    signal: context.stopping,
  };
}

/** Names all that an answer depends on, beside the change. */
function viewOf({ document, operationName, variableValues }: ExecutionArgs, viewer: Viewer | null): string {
  const { accountId, kind, credentialId, session, role, scopes } = viewer!;
  const caller = [accountId, kind, credentialId, session, role, [...scopes]];
  const asked = [document.loc?.source.body, operationName, variableValues];
  return createHash('sha256')
    .update(JSON.stringify([caller, asked]))
    .digest('base64url');
}
