/** The key of archives. It follows from SECRET_KEY, and opens nothing else. */
import type { Vault } from '../secrets.ts';

const PURPOSE = 'freehold archive';

/** Returns the key that seals archives. */
export const archiveKey = (vault: Vault): Buffer => vault.derive(PURPOSE);

/** Returns the keys that may have sealed an archive. */
export const archiveKeys = (vault: Vault): Buffer[] => vault.deriveAll(PURPOSE);
