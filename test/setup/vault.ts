/** The vault of tests. Processes that a test starts open what the test has sealed. */
import { Vault } from '../../entities/secrets.ts';

export const VAULT = new Vault(Buffer.alloc(32, 7));
