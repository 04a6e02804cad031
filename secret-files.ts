/** The secrets of the installation: configured ones, or those that the first start makes and keeps in DATA_DIR. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { Vault } from './entities/secrets.ts';

/** Returns a secret of DATA_DIR. The first start makes it, in a file that only its owner can read. */
export function keptSecret({ dataDir }: Pick<Config, 'dataDir'>, name: string, make: () => string): string {
  mkdirSync(dataDir, { recursive: true });
  const file = join(dataDir, name);
  if (!existsSync(file)) writeFileSync(file, `${make()}\n`, { mode: 0o600, flag: 'wx' });
  return readFileSync(file, 'utf8').trim();
}

const newKey = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64');
const bytesOf = (key: string) => Buffer.from(key, 'base64');

type Keys = Pick<Config, 'dataDir' | 'secretKey' | 'secretKeyPrevious'>;

/** Returns the vault of the service; undefined if this installation lacks SECRET_KEY. Makes no key. */
export function knownVaultOf({ secretKey, secretKeyPrevious, dataDir }: Keys): Vault | undefined {
  const file = join(dataDir, 'secret-key');
  const given = secretKey ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined);
  return given === undefined ? undefined : new Vault(bytesOf(given), ...secretKeyPrevious.map(bytesOf));
}

/** The same for commands that need it. @throws Error if SECRET_KEY is not known here */
export function requiredVaultOf(config: Keys): Vault {
  const vault = knownVaultOf(config);
  if (vault) return vault;
  throw new Error(
    `SECRET_KEY is not known here. Set it to the key of the service, or put its file secret-key into ${config.dataDir}.`,
  );
}

/**
 * Returns the vault with SECRET_KEY and the previous keys.
 * @param check refuses a wrong key; then a key that was made for this start goes again
 */
export async function vaultOf(config: Keys, check: (vault: Vault) => Promise<void>): Promise<Vault> {
  const file = join(config.dataDir, 'secret-key');
  const isNew = !config.secretKey && !existsSync(file);
  const current = config.secretKey ?? keptSecret(config, 'secret-key', newKey);
  const vault = new Vault(bytesOf(current), ...config.secretKeyPrevious.map(bytesOf));
  try {
    await check(vault);
  } catch (error) {
    if (isNew) rmSync(file);
    throw error;
  }
  return vault;
}
