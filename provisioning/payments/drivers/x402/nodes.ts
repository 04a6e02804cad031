/** The nodes of the chain for viem, with limits for the simulations of foreign code. */
import { BaseError, HttpRequestError, RpcRequestError, toHex } from 'viem';
import { JsonRpc, RpcError } from '../json-rpc.ts';
import { Nodes } from '../nodes.ts';

const RPC_TIMEOUT_MS = 10_000;
/** A silent node gives way to the next one after so long. */
const NODE_TIMEOUT_MS = 4_000;
/**
 * The gas that a node spends at most on one simulation. It may run the code of the payer's wallet. It suffices for the
 * deployment of a wallet, and for a transfer after that.
 */
const SIMULATED_GAS_MAX = 1_500_000n;

/** The service asks a node again for its head after so long. */
const HEAD_MS = 5_000;

/** Whether a block is so old that its node has stopped. @param timestamp seconds since the epoch */
export const isStopped = (timestamp: bigint, staleSeconds: number): boolean =>
  timestamp < BigInt(Math.floor(Date.now() / 1000) - staleSeconds);

/**
 * Calls nodes for viem, which interprets its own errors only.
 * @param staleSeconds the age of the newest block of a node that has stopped. Another node comes first then
 */
export function providerOf(urls: readonly string[], staleSeconds: number) {
  const nodes = new Nodes(urls.map((url) => new JsonRpc({ url, batchMax: 1 })));
  const heads = new WeakMap<JsonRpc, { until: number; isOld: boolean }>();
  const hasStopped = async (node: JsonRpc, signal: AbortSignal): Promise<boolean> => {
    const now = performance.now();
    const known = heads.get(node);
    if (urls.length === 1 || (known && now < known.until)) return known?.isOld ?? false;
    const head = await node.call<{ timestamp: string }>(signal, 'eth_getBlockByNumber', 'latest', false);
    const isOld = isStopped(BigInt(head.timestamp), staleSeconds);
    heads.set(node, { until: now + HEAD_MS, isOld });
    return isOld;
  };
  return {
    request: async ({ method, params = [] }: { method: string; params?: unknown[] }) => {
      const call = { body: { method, params }, url: 'the node' };
      const faults: Error[] = [];
      const signal = AbortSignal.timeout(RPC_TIMEOUT_MS);
      const signalOf = () =>
        urls.length === 1 ? signal : AbortSignal.any([signal, AbortSignal.timeout(NODE_TIMEOUT_MS)]);
      const ask = async (node: JsonRpc): Promise<Answer> => {
        try {
          return { result: await node.call(signalOf(), method, ...limited(method, params)) };
        } catch (fault) {
          faults.push(fault as Error);
          if (isSimulation(method) && isRevert(fault)) return { refusal: fault };
          throw fault;
        }
      };
      let isAnyStopped = false;
      const askLive = async (node: JsonRpc) => {
        if (!(await hasStopped(node, signalOf()))) return ask(node);
        isAnyStopped = true;
        throw new Error('The node has stopped.');
      };
      try {
        const answer = await nodes.ask(signal, askLive).catch((fault: Error) => {
          // The refusal of a sent transaction may follow from another node, which passed it on before it failed.
          const counts = isAnyStopped ? isRpcError : isSimulation(method) ? isRefusal : () => false;
          const refusal = faults.find(counts);
          if (refusal) throw refusal;
          if (!isAnyStopped) throw fault;
          return nodes.ask(signal, ask);
        });
        if ('refusal' in answer) throw answer.refusal;
        return answer.result;
      } catch (fault) {
        const error = isRefusal(fault)
          ? new RpcRequestError({ ...call, error: fault })
          : new HttpRequestError({ ...call, details: (fault as Error).message });
        FAULTS.set(error, faults);
        throw error;
      }
    },
  };
}

/** A node answered a call: with a result, or with a refusal. */
type Answer = { result: unknown } | { refusal: RpcError };

const isRpcError = (fault: unknown): boolean => fault instanceof RpcError;

/** Whether a node answered with an error. A status from 400 on says that it is busy. */
const isRefusal = (fault: unknown): fault is RpcError => fault instanceof RpcError && fault.status < 400;

/** Whether the simulated contract refused. A second opinion would only hold the request: another node may be silent. */
const isRevert = (fault: unknown): fault is RpcError =>
  isRefusal(fault) && (fault.code === 3 || /revert/i.test(fault.message));

const isSimulation = (method: string): boolean => method === 'eth_call' || method === 'eth_estimateGas';

/** The parameters of a call. A simulation without a limit of its gas gets one, also in calls that libraries make. */
function limited(method: string, params: unknown[]): unknown[] {
  if (!isSimulation(method)) return params;
  const [call, ...rest] = params;
  return [{ gas: toHex(SIMULATED_GAS_MAX), ...(call as object) }, ...rest];
}

/** The faults of the asked nodes, by the error that tells of them. */
const FAULTS = new WeakMap<object, readonly Error[]>();
/** The faults of all nodes that a failed call asked. None: the call has asked no node. */
export function faultsOf(error: unknown): readonly Error[] {
  const told = error instanceof BaseError ? error.walk((one) => FAULTS.has(one as object)) : null;
  return (told && FAULTS.get(told)) ?? [];
}

/** Whether the node did not answer, as opposed to an answer with an error. */
export const isAway = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((one) => one instanceof HttpRequestError) !== null;
