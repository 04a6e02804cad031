/** Coins that the operator has switched off, or on again. A coin without a row is on. */
import { boolean, entity, key, now, type RowOf } from '../database/table.ts';

export const CoinSwitch = entity('coin_switch', {
  /** The code of a coin of the driver. */
  code: key(),
  available: boolean(),
  updatedAt: now(),
});
export type CoinSwitch = RowOf<typeof CoinSwitch>;
