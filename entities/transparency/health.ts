/** Whether Freehold reaches its engines and gateways, as a worker last measured it. Each component of the status has a row. */
import { entity, key, measured, now, type RowOf } from '../database/table.ts';

export const HEALTH_STATUSES = ['operational', 'partial_outage', 'major_outage'] as const;

export const Health = entity('health', {
  /** The id of the component, such as `machines-ams`. */
  component: key(),
  status: measured(...HEALTH_STATUSES),
  checkedAt: now(),
});
export type Health = RowOf<typeof Health>;

export const PAYMENTS_COMPONENT = 'payments';
/** Whether the service has warned the operator that x402 payments will soon stop. The status does not show it. */
export const X402_WARNING_COMPONENT = 'x402-warning';
export const machinesComponent = (region: string): string => `machines-${region}`;
