/** Whether what is outside can be reached, as a worker last found it. One row for each component of the status. */
import { entity, key, now, oneOf, type RowOf } from '../database/table.ts';

export const HEALTH_STATUSES = ['operational', 'partial_outage', 'major_outage'] as const;

export const Health = entity('health', {
  /** The id of the component, such as `machines-ams`. */
  component: key(),
  status: oneOf(...HEALTH_STATUSES),
  checkedAt: now(),
});
export type Health = RowOf<typeof Health>;

export const PAYMENTS_COMPONENT = 'payments';
/** Not shown: whether the operator has been told that payment by x402 will end soon. */
export const X402_WARNING_COMPONENT = 'x402-warning';
export const machinesComponent = (region: string): string => `machines-${region}`;
