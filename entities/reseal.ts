/** Seals all values again under the current key, while the service runs. */
import type { Database } from './database/database.ts';
import { SEALED_COLUMNS, type SealedColumn } from './database/sealed.ts';
import { FORGET_OTHER_KEYS, LIST_KEYS, lockKeys, requireAllSealUnder } from './secret-key.ts';
import { KeyMissing, type Vault } from './secrets.ts';

const BATCH = 500;
/** A pass skips rows that a request has locked, so there may be several. */
const PASSES_MAX = 100;
const PAUSE_MS = 100;
/** How long the service recognises repeated requests. Those without a credential have names that depend on the key. */
const REPEATED_HOURS = 24;

export interface Resealed {
  /** How many values of each column were sealed again. */
  values: Map<string, number>;
  /** The values that no key of the vault opens, as `totp.seed acct_…`. */
  lost: string[];
  /** Whether the database knew another key until now. */
  hadOthers: boolean;
  /** When the service needs the previous keys no more. Undefined while values need them. */
  previousUntil?: Date;
}

/**
 * Seals all values under the current key of the vault. If that succeeds, the database forgets the other keys.
 * @throws Error if a running process seals under another key at the end
 */
export async function resealAll(db: Database, vault: Vault): Promise<Resealed> {
  const values = new Map<string, number>();
  let lost: string[] = [];
  for (let pass = 1; pass <= PASSES_MAX; pass++) {
    const found = await Promise.all(SEALED_COLUMNS.map((column) => resealColumn(db, vault, column)));
    for (const { name, resealed } of found) values.set(name, (values.get(name) ?? 0) + resealed);
    lost = found.flatMap((one) => one.lost);
    const others = found.reduce((sum, one) => sum + one.others, 0);
    if (!others) return { values, lost, ...(await forgetOthers(db, vault)) };
    if (others === lost.length) break;
    await new Promise((resume) => setTimeout(resume, PAUSE_MS));
  }
  return { values, lost, hadOthers: true };
}

/** Goes through the values of a column that are not under the current key. */
async function resealColumn(db: Database, vault: Vault, { name, LIST_OTHERS, REPLACE, ...column }: SealedColumn) {
  const seen = { name, others: 0, resealed: 0, lost: [] as string[] };
  for (let after = ''; ; ) {
    const batch = await LIST_OTHERS.all(db, [vault.header, after, BATCH]);
    if (!batch.length) return seen;
    after = batch.at(-1)!.key;
    seen.others += batch.length;
    const opened = batch.flatMap(({ key, sealed }) => {
      try {
        return { key, sealed, again: column.seal(vault, column.open(vault, sealed, key), key) };
      } catch (error) {
        if (!(error instanceof KeyMissing)) throw error;
        seen.lost.push(`${name} ${key}`);
        return [];
      }
    });
    const given = [opened.map(({ key }) => key), opened.map(({ sealed }) => sealed), opened.map(({ again }) => again)];
    seen.resealed += (await REPLACE.all(db, given)).length;
  }
}

async function forgetOthers(db: Database, vault: Vault) {
  return db.transaction(async (tx) => {
    await lockKeys(tx);
    await requireAllSealUnder(tx, vault);
    const keys = await LIST_KEYS.all(tx);
    await FORGET_OTHER_KEYS.all(tx, [vault.keyId]);
    const { createdAt } = keys.find(({ id }) => id.equals(vault.keyId))!;
    return { hadOthers: keys.length > 1, previousUntil: new Date(createdAt.getTime() + REPEATED_HOURS * 3_600_000) };
  });
}
