/** Work that only one process does at a time, such as taking a nonce of the gas wallet. */
import { forAllCallers } from '../../../entities/caller.ts';
import type { Database } from '../../../entities/database/database.ts';
import { LOCK_NAME } from '../../../entities/database/lock-name.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Exclusive } from '../drivers/x402/driver.ts';

/** Runs one work at a time in this process, then in all processes. Waiting in the process takes no connection. */
export function exclusiveOf(db: Database, name: string): Exclusive {
  let queue: Promise<unknown> = Promise.resolve();
  return (work) =>
    new Promise((resolve, reject) => {
      let done: ReturnType<typeof work> | undefined;
      const locked = async (tx: Transaction) => {
        await LOCK_NAME.all(tx, [name]);
        // The database may repeat the transaction, but the work runs once.
        done ??= work();
        // The caller need not wait for the end of the transaction, which commits nothing.
        await done.then(resolve);
      };
      // All payers wait in the queue, so no payer's other statements may delay it.
      queue = queue.then(() => forAllCallers(() => db.transaction(locked))).catch(reject);
    });
}
