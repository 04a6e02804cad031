/** The numbers by which deposit addresses are derived: each is given out once. */
import type { Queryable } from '../database/database.ts';
import { entity, int, key, type RowOf } from '../database/table.ts';

export const Deposit = entity('deposit', {
  /** What the addresses are derived from, such as the fingerprint of an extended public key. */
  source: key(),
  /** The next number. */
  next: int(),
});
export type Deposit = RowOf<typeof Deposit>;

/** A number of that source which nobody was given before. */
export async function nextDeposit(db: Queryable, source: string): Promise<number> {
  const [given] = await db.query<{ number: number }>(
    `insert into deposit (source, next) values ($1, 1) on conflict (source) do update set next = deposit.next + 1
      returning next - 1 as number`,
    [source],
  );
  return given!.number;
}
