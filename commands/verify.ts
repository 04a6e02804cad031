/**
 * `npm run verify`: proves that the books balance, and that the other tables of money agree with the ledger. It also
 * proves that the ledger and the audit log are as the service wrote them. First it proves that the database has the
 * objects of the service and no others, which could hide rows. With `--digest`, it proves that the log still has what it had
 * when the service published that digest. Otherwise it names what is wrong and ends with 1. Like any start, it migrates the
 * tables. It keeps the mark of a proof without faults, and changes nothing else. It makes no database. It may run beside the
 * service. With `--since-last-proof` it reads only what came since that mark.
 */
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { inExistingDatabase } from '../entities/database/command.ts';
import { Database } from '../entities/database/database.ts';
import { keepMark } from '../entities/payments/proof/mark.ts';
import { connectionName } from '../entities/secret-key.ts';
import { knownVaultOf, requiredVaultOf } from '../secret-files.ts';
import { proveNewRecords, proveRecords } from './records.ts';

async function verify(): Promise<boolean> {
  const { digest, 'since-last-proof': isSince } = givenOptions();
  const digests = digest.flatMap(digestsIn);
  const config = readConfig();
  const vault = isSince ? requiredVaultOf(config) : knownVaultOf(config);
  return inExistingDatabase(config, async ({ url, ownerUrl, place }) => {
    // Code in the database could otherwise tell this program by its name from a service, and show it other rows.
    const db = await Database.open(url, { poolSize: 2, ownerUrl, ...(vault && { name: connectionName(vault) }) });
    try {
      console.log(`Database ${place}\n`);
      if (isSince && vault) return await proveNewRecords(db, vault);
      const mark = await proveRecords(db, vault, digests);
      if (mark && vault) await keepMark(db, vault, mark);
      return Boolean(mark);
    } finally {
      await db.close();
    }
  });
}

const OPTIONS = {
  digest: { type: 'string', multiple: true, default: [] as string[] },
  'since-last-proof': { type: 'boolean', default: false },
} as const;
const USAGE =
  'Usage: npm run verify [-- --digest <a digest, or a file with an answer of the service> | --since-last-proof]';

/** @throws Error with the usage */
function givenOptions() {
  let values: { digest: string[]; 'since-last-proof': boolean };
  try {
    values = parseArgs({ options: OPTIONS }).values;
  } catch {
    throw new Error(USAGE);
  }
  // An old digest lies before the mark.
  if (values['since-last-proof'] && values.digest.length) throw new Error(USAGE);
  return values;
}

/** Returns a digest, or all digests in a file with answers of the service. @throws Error if there is none */
function digestsIn(given: string): string[] {
  const text = existsSync(given) ? readFileSync(given, 'utf8') : given;
  const digests = /^[0-9a-f]{64}$/.test(text.trim())
    ? [text.trim()]
    : [...text.matchAll(/"sha256": ?"([0-9a-f]{64})"/g)].map(([, digest]) => digest!);
  if (!digests.length)
    throw new Error('--digest is a digest of 64 hexadecimal digits, or a file with an answer of the service.');
  return digests;
}

try {
  process.exitCode = (await verify()) ? 0 : 1;
} catch (error) {
  console.error(`The service cannot verify its records. ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
