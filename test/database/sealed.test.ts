/** Each column of bytes is sealed, or stated here to need no seal. */
import { expect, it } from 'vitest';
import { SEALED_COLUMNS } from '../../entities/database/sealed.ts';
import { TABLES } from '../../entities/database/tables.ts';
import { newDatabase } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';

const db = await newDatabase(atEnd, { poolSize: 2 });

/** SHA-256 of secrets with 190 bits or more, hashes and signatures of public things, and public keys. */
const UNSEALED = [
  'agent.public_key',
  'api_key.digest',
  'idempotency_key.key_digest',
  'oauth_client.secret_digest',
  'pending_login.digest',
  'proof_mark.mac',
  'recovery_challenge.digest',
  'recovery_code.digest',
  'secret_key.canary', // its own key seals it
  'secret_key.id',
  'operator.invitation_digest',
  'operator.token_digest',
  'operator_session.digest',
  'session.access_digest',
  'session.refresh_digest',
  'x402_authorization.key_digest',
  'x402_authorization.signature_digest',
];
/** Columns of the audit chain. */
const AUDIT = /^audit_/;

it('Every column of bytes is declared as sealed, or needs no seal', async () => {
  const columns = await db.query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and data_type = 'bytea'`,
  );
  const names = columns.map(({ name }) => name).filter((name) => !AUDIT.test(name));
  expect(names.toSorted()).toEqual([...SEALED_COLUMNS.map(({ name }) => name), ...UNSEALED].toSorted());
});

it('PostgreSQL copies no sealed value into its statistics', async () => {
  const columns = await db.query<{ name: string }>(
    `select relname || '.' || attname as name from pg_attribute join pg_class on pg_class.oid = attrelid
      where relnamespace = 'public'::regnamespace and attnum > 0 and not attisdropped and attstattarget = 0`,
  );
  expect(columns.map(({ name }) => name).toSorted()).toEqual(SEALED_COLUMNS.map(({ name }) => name).toSorted());
});

it('No delivery to a webhook takes a column of bytes with it, but the key of an agent', async () => {
  const { outboxSql } = await import('../../entities/webhooks/outbox.ts');
  for (const table of TABLES) {
    const sql = outboxSql('changed', '1', "'x'", table);
    const columns = Object.values(table.options.columns) as { name: string; type: unknown }[];
    for (const { name, type } of columns)
      if (type === 'bytea' && name !== 'public_key')
        expect(sql, `${table.options.name}.${name}`).toContain(`'${name}'`);
  }
});
