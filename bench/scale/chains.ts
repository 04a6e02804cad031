/** Adds entries of the audit log, which `grow` leaves out. It also adds the hash chains, and a signature for each of 90 days. */
import { sign } from 'node:crypto';
import type { Database } from '../../entities/database/database.ts';
import { columnsOf } from '../../entities/database/table.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { AuditEntry } from '../../entities/history/audit.ts';
import { chainedEntry } from '../../entities/history/audit-link.ts';
import { publicKeyOf, signingKeys } from '../../entities/history/audit-signature.ts';
import { linesOf, type SignedHead, textDigest, writeSignedPart } from '../../entities/history/audit-text.ts';
import { type Chained, LEDGER_CHAIN, linkHash, NO_HASH } from '../../entities/history/hash-chain.ts';
import { Transfer } from '../../entities/payments/ledger.ts';
import { chainedTransfer } from '../../entities/payments/ledger-chain.ts';
import type { Vault } from '../../entities/secrets.ts';

const DAYS = 90;
const CHUNK = 20_000;
const ADD_ENTRIES = `
  insert into audit_entry (id, account_id, action, actor_type, actor_id, actor_name, request_id, method, path, status, created_at)
    select 'aud_' || lpad(n::text, 26, '0'), 'acct_' || lpad((1 + n % $2)::text, 26, '0'), 'api.request', 'api_key',
      'key_' || lpad((1 + n % $2)::text, 26, '0'), 'automation', 'req_' || lpad(n::text, 26, '0'), 'POST', '/v1/servers', 201,
      date_trunc('milliseconds', now() - interval '${DAYS - 1} days' + interval '${DAYS - 1} days' * n / $1)
    from generate_series(1, $1::int) n`;
const HEADS_OF_DAY = `
  select distinct on (audit_link.account_id) audit_link.account_id, number, encode(hash, 'hex') as hash, created_at,
      min(number) over (partition by audit_link.account_id) as first
    from audit_link join audit_entry on id = entry_id where linked_at >= $1 and linked_at < $2
    order by audit_link.account_id, number desc`;
const LEDGER_HEAD = `
  select account_id, number, encode(hash, 'hex') as hash, linked_at as created_at, 1::bigint as first
    from audit_link where account_id = '${LEDGER_CHAIN}' and linked_at < $1 order by linked_at desc limit 1`;

/** @param entries the number of entries, of so many accounts */
export async function addChains(db: Database, vault: Vault, entries: number, accounts: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('set local session_replication_role = replica');
    await tx.query(ADD_ENTRIES, [entries, accounts]);
    await chainAll(tx, 'transfer', columnsOf(Transfer), (row) => chainedTransfer(row as unknown as Transfer));
    await chainAll(tx, 'audit_entry', columnsOf(AuditEntry), (row) => chainedEntry(row as unknown as AuditEntry));
  });
  await db.query('vacuum (analyze)');
  await signDays(db, vault);
}

/** Links the records in the order of their ids. */
async function chainAll(tx: Queryable, table: string, columns: string, seen: (row: object) => Chained): Promise<void> {
  const heads = new Map<string, { number: bigint; hash: Buffer }>();
  for (let after = ''; ; ) {
    const rows = await tx.query<{ id: string }>(
      `select ${columns} from ${table} where id > $1 order by id limit ${CHUNK}`,
      [after],
    );
    if (!rows.length) return;
    after = rows.at(-1)!.id;
    const links = rows.map(seen).map((record) => {
      const { number, hash } = heads.get(record.accountId) ?? { number: 0n, hash: NO_HASH };
      const head = { number: number + 1n, hash: linkHash(hash, record) };
      heads.set(record.accountId, head);
      return [record.accountId, head.number, record.id, head.hash, record.createdAt] as const;
    });
    await tx.query(
      'insert into audit_link (account_id, number, entry_id, hash, linked_at) select * from unnest($1::text[], $2::bigint[], $3::text[], $4::bytea[], $5::timestamptz[])',
      [0, 1, 2, 3, 4].map((place) => links.map((link) => link[place as 0])),
    );
  }
}

async function signDays(db: Database, vault: Vault): Promise<void> {
  const [key] = signingKeys(vault);
  const publicKey = publicKeyOf(key);
  let [previous, since]: [string, Date | null] = ['', null];
  for (let day = 1; day <= DAYS; day++) {
    const signedAt: Date = new Date(Date.now() - (DAYS - day) * 86_400_000 - 600_000);
    const heads = [
      ...(await db.query<SignedHead>(HEADS_OF_DAY, [since ?? '-infinity', signedAt])),
      ...(await db.query<SignedHead>(LEDGER_HEAD, [signedAt])),
    ].map((head) => ({ ...head, number: BigInt(head.number), first: BigInt(head.first!) }));
    const part = { number: BigInt(day), previous, signedAt, publicKey, others: [], since };
    const lines = linesOf(heads);
    const text: string = writeSignedPart(part, lines);
    await db.query(
      'insert into audit_signature (number, signed_text, public_key, signature, signed_at) values ($1, $2, $3, $4, $5)',
      [day, `${text}\n${lines}`, publicKey, sign(null, Buffer.from(text), key), signedAt],
    );
    [previous, since] = [textDigest(text), signedAt];
  }
}
