/** The nodes of the chain for viem, with limits for the simulations of foreign code. */
import { BaseError, HttpRequestError, RpcRequestError, toHex } from 'viem';
import { JsonRpc, RpcError } from '../json-rpc.ts';
import { Nodes } from '../nodes.ts';

const RPC_TIMEOUT_MS = 10_000;
/**
 * The gas that a node spends at most on one simulation. It may run the code of the payer's wallet. It suffices for the
 * deployment of a wallet, and for a transfer after that.
 */
const SIMULATED_GAS_MAX = 1_500_000n;

/** Calls nodes for viem, which interprets its own errors only. */
export function providerOf(urls: readonly string[]) {
  const nodes = new Nodes(urls.map((url) => new JsonRpc({ url, batchMax: 1 })));
  return {
    request: async ({ method, params = [] }: { method: string; params?: unknown[] }) => {
      const call = { body: { method, params }, url: 'the node' };
      const faults: Error[] = [];
      const signal = AbortSignal.timeout(RPC_TIMEOUT_MS);
      const ask = (node: JsonRpc) =>
        node.call(signal, method, ...limited(method, params)).catch((fault: Error) => {
          faults.push(fault);
          throw fault;
        });
      try {
        return await nodes.ask(signal, ask);
      } catch (fault) {
        const error =
          fault instanceof RpcError && fault.status < 400
            ? new RpcRequestError({ ...call, error: fault })
            : new HttpRequestError({ ...call, details: (fault as Error).message });
        FAULTS.set(error, faults);
        throw error;
      }
    },
  };
}

/** The parameters of a call. A simulation without a limit of its gas gets one, also in calls that libraries make. */
function limited(method: string, params: unknown[]): unknown[] {
  if (method !== 'eth_call' && method !== 'eth_estimateGas') return params;
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
