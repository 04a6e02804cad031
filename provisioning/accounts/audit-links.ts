/** Links new audit entries into the hash chains of their accounts. Signs the heads of the chains once a day. */
import type { Database } from '../../entities/database/database.ts';
import { linkEntries } from '../../entities/history/audit-link.ts';
import { signHeads, signingKeys } from '../../entities/history/audit-signature.ts';
import { textDigest } from '../../entities/history/audit-text.ts';
import type { Vault } from '../../entities/secrets.ts';
import { periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const AUDIT_LINKS_PROCESS = 'audit-links';
export const AUDIT_SIGNATURE_PROCESS = 'audit-signature';
const LINK_SECONDS = 3;
const CHUNK = 1_000;
/** How often the worker looks whether the last signature is a day old. */
const SIGN_SECONDS = 600;

export const auditLinksProcess = (db: Database): Process =>
  periodic({
    start: async () => {
      const linked = await db.transaction((tx) => linkEntries(tx, CHUNK));
      return hop('start', { afterSeconds: linked === CHUNK ? 0 : LINK_SECONDS });
    },
  });

export const auditSignatureProcess = (db: Database, vault: Vault): Process =>
  periodic({
    start: async () => {
      const signed = await db.transaction((tx) => signHeads(tx, signingKeys(vault)));
      // A copy outside of the database: a thief of the database cannot take it back.
      if (signed)
        console.log(
          `Signed the heads of the audit log: number ${signed.number}, sha256 ${textDigest(signed.signedText)}`,
        );
      return hop('start', { afterSeconds: SIGN_SECONDS });
    },
  });
