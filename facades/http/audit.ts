/** What the facades tell the audit log: every request of a credential that could change something. */
import type { Caller } from '../compile/run.ts';

/**
 * Told of a mutating request when it has been answered, whatever the answer was: the method, the template of its path,
 * and the status; nothing that was sent. Never throws.
 */
export type AuditRequest = (
  caller: Pick<Caller, 'viewer' | 'requestId'>,
  request: { method: string; path: string; status: number },
) => void;
