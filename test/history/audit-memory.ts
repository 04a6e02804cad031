/** Signs and proves in a thread with little memory. It posts what it made and found. */
import { parentPort, workerData } from 'node:worker_threads';
import { Database } from '../../entities/database/database.ts';
import { proveAudit } from '../../entities/history/audit-proof.ts';
import { signHeads } from '../../entities/history/audit-sign.ts';
import { publicKeyOf, signingKeys } from '../../entities/history/audit-signature.ts';
import { VAULT } from '../setup/vault.ts';

const db = await Database.open(workerData.url, { poolSize: 2 });
const signed = await db.transaction((tx) => signHeads(tx, signingKeys(VAULT)));
const { faults, hasMoreFaults } = await proveAudit(db, { publicKeys: signingKeys(VAULT).map(publicKeyOf) });
await db.close();
parentPort!.postMessage({ signed: signed.length, details: faults.map(({ detail }) => detail), hasMoreFaults });
