/**
 * Links new audit entries into the hash chains of their accounts, and new transfers into that of the ledger. Signs the heads
 * of the chains once a day, and logs delays.
 */
import type { Database } from '../../entities/database/database.ts';
import { linkEntries } from '../../entities/history/audit-link.ts';
import { signHeads } from '../../entities/history/audit-sign.ts';
import { isLatestBy, signingKeys } from '../../entities/history/audit-signature.ts';
import { findWaiting, LEDGER_CHAIN, type Linked } from '../../entities/history/hash-chain.ts';
import { log } from '../../entities/monitoring/log.ts';
import { linkTransfers } from '../../entities/payments/ledger-chain.ts';
import type { Vault } from '../../entities/secrets.ts';
import { signalTask } from '../../entities/tasks/start.ts';
import { cronSubject, periodic } from '../tasks/schedule.ts';
import { hop, type Process } from '../tasks/tasks.ts';

export const AUDIT_LINKS_PROCESS = 'audit-links';
export const AUDIT_SIGNATURE_PROCESS = 'audit-signature';
const LINK_SECONDS = 3;
const CHUNK = 1_000;
/** How often the worker looks whether the last signature is a day old. */
const SIGN_SECONDS = 600;

/** How long the worker leaves a chain alone that took no link, so that others do not wait for it. */
const BROKEN_SECONDS = 600;
/** The log names at most so many accounts whose entries wait. */
const WAITING_MAX = 20;

export const auditLinksProcess = (db: Database): Process => {
  const left = new Set<string>();
  const noLinks: Linked = { count: 0, broken: new Map() };
  return periodic({
    start: async () => {
      const entries = await db.transaction((tx) => linkEntries(tx, CHUNK, left));
      const transfers = left.has(LEDGER_CHAIN) ? noLinks : await db.transaction((tx) => linkTransfers(tx, CHUNK));
      const broken = [...entries.broken, ...transfers.broken];
      for (const [accountId, reason] of broken) {
        log.error(`The worker cannot link ${nameOf(accountId)}: ${reason}`);
        left.add(accountId);
        setTimeout(() => left.delete(accountId), BROKEN_SECONDS * 1000).unref();
      }
      const hasMore = Math.max(entries.count, transfers.count) === CHUNK || broken.length > 0;
      return hop('start', { afterSeconds: hasMore ? 0 : LINK_SECONDS });
    },
  });
};
const nameOf = (accountId: string) => (accountId === LEDGER_CHAIN ? 'transfers' : `audit entries of ${accountId}`);

/** Wakes the task that signs, unless the present key made the latest signature. The keys before it need its signature. */
export const signWithNewKey = (db: Database, vault: Vault): Promise<void> =>
  db.transaction(async (tx) => {
    if (!(await isLatestBy(tx, signingKeys(vault)[0]))) await signalTask(tx, cronSubject(AUDIT_SIGNATURE_PROCESS));
  });

export const auditSignatureProcess = (db: Database, vault: Vault): Process =>
  periodic({
    start: async () => {
      // A transfer that a signature lacks is younger, or somebody dated it back.
      while ((await db.transaction((tx) => linkTransfers(tx, CHUNK))).count === CHUNK);
      const signed = await db.transaction((tx) => signHeads(tx, signingKeys(vault)));
      // A copy outside of the database: a thief of the database cannot take it back.
      for (const { number, sha256 } of signed)
        log.info(`Signed the heads of the audit log: number ${number}, sha256 ${sha256}`);
      for (const { accountId, entryId, detail } of await findWaiting(db, WAITING_MAX))
        log.error(
          `${accountId === LEDGER_CHAIN ? 'The ledger' : `The audit log of ${accountId}`}, from entry ${entryId}: ${detail}`,
        );
      return hop('start', { afterSeconds: SIGN_SECONDS });
    },
  });
