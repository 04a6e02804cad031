/**
 * A service starts only if it has all keys under which the database has sealed values. So the start finds a wrong SECRET_KEY,
 * and not the first login.
 */
import { RECOVERY_CODES, type RecoveryCodes } from './accounts/totp.ts';
import { newClient } from './database/connection.ts';
import type { Database } from './database/database.ts';
import { SEALED_COLUMNS, type SealedColumn } from './database/sealed.ts';
import { exists, insert } from './database/table.ts';
import type { Queryable } from './database/transaction.ts';
import { LIST_KEYS, lockKeys, requireAllHave, requireAllSealUnder, SecretKey } from './secret-key.ts';
import type { Vault } from './secrets.ts';
import { USER_DATA } from './servers/server.ts';

const CANARY = 'freehold';
const CONTEXT = 'secret_key.canary';

/** The service lacks a key of the database. */
export class WrongSecretKey extends Error {
  constructor() {
    super(
      'SECRET_KEY is wrong: the database has secrets under another key. ' +
        'Start with the key that the database was made with, or name that one in SECRET_KEY_PREVIOUS.',
    );
  }
}

/** Checks the keys before anything changes the database. @throws WrongSecretKey */
export async function checkKeys(url: string, vault: Vault): Promise<void> {
  const client = newClient(url);
  await client.connect();
  try {
    const { rows } = await client.query(`select to_regclass('secret_key') as name`);
    if (rows[0].name) requireKeys(vault, (await client.query(LIST_KEYS.text)).rows as SecretKey[]);
  } finally {
    await client.end();
  }
}

const requireKeys = (vault: Vault, keys: readonly SecretKey[]): void =>
  requireOpened(
    vault,
    keys.map(({ canary }) => canary),
  );

/** Checks the words that the keys of a database have sealed. @throws WrongSecretKey if the vault lacks one of the keys */
export function requireOpened(vault: Vault, canaries: readonly Buffer[]): void {
  for (const canary of canaries) if (!opens(() => vault.open(canary, CONTEXT) === CANARY)) throw new WrongSecretKey();
}

function opens(open: () => boolean): boolean {
  try {
    return open();
  } catch {
    return false;
  }
}

/**
 * Notes that the service seals under its current key from now on.
 * @throws WrongSecretKey, or Error if a running process lacks the key
 */
export async function useKey(db: Database, vault: Vault): Promise<void> {
  if (!(await LIST_KEYS.all(db)).length) await sealFirst(db, vault);
  await db.transaction(async (tx) => {
    await lockKeys(tx);
    const keys = await LIST_KEYS.all(tx);
    requireKeys(vault, keys);
    if (keys.some(({ id }) => id.equals(vault.keyId))) return;
    await requireAllHave(tx, vault);
    await insert(tx, SecretKey, { id: vault.keyId, canary: vault.seal(CANARY, CONTEXT) });
  });
}

/** @throws Error if no service has sealed under the current key yet, or one still seals under another */
export async function requireUsed(db: Queryable, vault: Vault): Promise<void> {
  if (await exists(db, SecretKey, { id: vault.keyId })) return requireAllSealUnder(db, vault);
  throw new Error('No service has started with this SECRET_KEY yet. Restart every process with it first.');
}

/** Gives the values of the first versions their key id, and seals what migration 0013 could not. @throws WrongSecretKey */
async function sealFirst(db: Database, vault: Vault): Promise<void> {
  for (const column of SEALED_COLUMNS) {
    const rows = await column.LIST_OTHERS.all(db, [vault.header, '', null]);
    const again = rows.map(({ key, sealed }) => column.seal(vault, firstValue(vault, column, key, sealed), key));
    await column.REPLACE.all(db, [rows.map(({ key }) => key), rows.map(({ sealed }) => sealed), again]);
  }
}

function firstValue(vault: Vault, column: SealedColumn, key: string, value: Buffer): string {
  if (column === USER_DATA) return value.toString('utf8');
  if (column === RECOVERY_CODES) return JSON.stringify(firstCodes(vault, value));
  try {
    return vault.openFirst(value, column.contextOf(key));
  } catch {
    throw new WrongSecretKey();
  }
}

/** Their key was derived from SECRET_KEY. Each digest has 32 bytes. */
const firstCodes = (vault: Vault, digests: Buffer): RecoveryCodes => ({
  key: vault.derive('freehold digest').toString('base64'),
  digests: Array.from({ length: digests.length / 32 }, (_, at) =>
    digests.subarray(32 * at, 32 * (at + 1)).toString('base64'),
  ),
});
