/** The operations of an update: at most one, and only from the statuses of the table. */
import { ApiError } from '../../entities/errors.ts';
import type { ServerChange, ServerStatus } from '../../entities/servers/server.ts';

export type OperationName = Exclude<ServerChange['operation'], 'resume'>;

export interface Operation {
  powerState?: 'ON' | 'OFF' | null | undefined;
  action?: 'REBOOT' | 'RESET' | 'REBUILD' | null | undefined;
  /** The code of a larger tier. */
  serviceCode?: string | null | undefined;
  /** Belongs to a rebuild only, as do the next three. Without it, the image stays, as the keys do. */
  os?: string | null | undefined;
  sshKeyIds?: string[] | null | undefined;
  userData?: string | null | undefined;
  rootPassword?: string | null | undefined;
}

const ACTIONS = { REBOOT: 'reboot', RESET: 'reset', REBUILD: 'rebuild' } as const;
const OF_REBUILD = {
  os: 'os',
  sshKeyIds: 'ssh_key_ids',
  userData: 'user_data',
  rootPassword: 'root_password',
} as const;

/** @throws ApiError one_operation_per_request, or validation_failed for fields of a rebuild without one */
export function operationOf(asked: Operation): OperationName | undefined {
  const { powerState, action, serviceCode } = asked;
  const operations: OperationName[] = [];
  if (powerState) operations.push(powerState === 'ON' ? 'start' : 'stop');
  if (action) operations.push(ACTIONS[action]);
  if (serviceCode != null) operations.push('resize');
  if (operations.length > 1) throw new ApiError('one_operation_per_request');
  if (action !== 'REBUILD') {
    const errors = (Object.keys(OF_REBUILD) as (keyof typeof OF_REBUILD)[])
      .filter((field) => asked[field] != null)
      .map((name) => OF_REBUILD[name])
      .map((field) => ({ field, code: 'not_allowed', message: `${field} needs the action rebuild.` }));
    if (errors.length) throw new ApiError('validation_failed', errors[0]!.message, { errors });
  }
  return operations[0];
}

/** The status that an operation leads to first. If the server has it, the operation has no effect. */
export const LEADS_TO: Partial<Record<ServerStatus, Partial<Record<OperationName, ServerStatus>>>> = {
  RUNNING: { start: 'RUNNING', stop: 'STOPPING', reboot: 'REBOOTING', reset: 'REBOOTING', rebuild: 'REBUILDING' },
  STOPPED: { start: 'STARTING', stop: 'STOPPED', rebuild: 'REBUILDING', resize: 'RESIZING' },
};

const FIELDS: Record<OperationName, string> = {
  start: 'power_state',
  stop: 'power_state',
  reboot: 'action',
  reset: 'action',
  rebuild: 'action',
  resize: 'service_code',
};

/** @throws ApiError server_busy, server_suspended, server_not_stopped, or validation_failed where waiting cannot help */
export function statusAfter(status: ServerStatus, operation: OperationName): ServerStatus {
  const to = LEADS_TO[status]?.[operation];
  if (to) return to;
  if (status === 'SUSPENDED') throw new ApiError('server_suspended');
  if (status === 'RUNNING') throw new ApiError('server_not_stopped');
  if (status !== 'STOPPED' && status !== 'FAILED') throw new ApiError('server_busy');
  const sentence =
    status === 'STOPPED'
      ? 'The server is stopped. Start it with power_state on.'
      : 'The order has failed, so it has no machine. Delete the server, and order again.';
  const errors = [{ field: FIELDS[operation], code: 'not_possible', message: sentence }];
  throw new ApiError('validation_failed', sentence, { errors });
}
