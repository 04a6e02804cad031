/** The caller of an operation, or its task, for the turns at the connections of the database. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { siteOf } from './networks.ts';

export interface Caller {
  kind: 'account' | 'stranger' | 'task';
  /** The account of the caller or of the task, or the site of a stranger. */
  group: string;
  /** Aborts when the caller has gone. Then the operation waits for no connection. Absent: the operation goes on. */
  signal?: AbortSignal | undefined;
  /** The connections that the operation has. It gets further ones at once, because it might wait for itself. */
  connections: number;
}

/** The caller of the present operation. Work that the service does for no account has none. */
export const callers = new AsyncLocalStorage<Caller | undefined>();

/** Does the work for a caller. */
export const onBehalfOf = <T>({ kind, group, signal }: Omit<Caller, 'connections'>, work: () => T): T =>
  callers.run({ kind, group, signal, connections: 0 }, work);

/** Does a read that several callers share, at the turn of the present one. It goes on when that caller goes. */
export function sharing<T>(work: () => T): T {
  const caller = callers.getStore();
  return caller ? onBehalfOf({ ...caller, signal: undefined }, work) : work();
}

/** Does the work for a caller without a known credential, at the turn of the site of the address. */
export const onBehalfOfStranger = <T>(address: string | null, work: () => T, signal?: AbortSignal): T =>
  onBehalfOf({ kind: 'stranger', group: siteOf(address ?? ''), signal }, work);

/**
 * Does work that callers share, such as the writing of a log. Otherwise it would take the turns of the caller that began
 * it. A flood of that caller would then delay the others.
 */
export const forAllCallers = <T>(work: () => T): T => callers.run(undefined, work);
