/** The last blocks of each chain that is followed, by which a reorganisation is noticed. */
import { entity, int, type RowOf, text } from '../database/table.ts';

export const ChainBlock = entity('chain_block', {
  network: { ...text(), primary: true },
  height: { ...int(), primary: true },
  hash: text(),
});
export type ChainBlock = RowOf<typeof ChainBlock>;
