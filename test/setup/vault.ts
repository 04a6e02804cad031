/** The vault of tests. Processes that a test starts open what the test has sealed. */
import { Vault } from '../../entities/secrets.ts';

/** SECRET_KEY of the services of tests: processes that share a database share it, too. */
export const SECRET_KEY = Buffer.alloc(32, 7).toString('base64');
export const VAULT = new Vault(Buffer.from(SECRET_KEY, 'base64'));
