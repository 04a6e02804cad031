/**
 * The role by which the service uses the database. It owns no table, so it can change neither tables nor triggers. It adds
 * rows to the tables of record and can do nothing else to them. Migrations use another role, which owns the tables.
 */
import type pg from 'pg';

/** Tables whose rows the service only adds and reads. */
const APPEND_ONLY = [
  'account_note',
  'audit_entry',
  'audit_link',
  'audit_signature',
  'canary',
  'closed_month',
  'event',
  'movement',
];

/** Tables from which the service also deletes rows. */
const DELETABLE = [
  ...[
    'abuse_case',
    'api_key',
    'ended_client',
    'oauth_client',
    'operator_session',
    'pending_login',
    'recovery_challenge',
    'recovery_code',
    'session',
    'solved_challenge',
    'ssh_key',
    'totp',
  ],
  ...[
    'address',
    'address_pool',
    'bonus_tier',
    'catalog_item',
    'address_use',
    'brake',
    'deployment',
    'engine',
    'engine_image',
    'finding',
    'host',
    'meter',
    'meter_sample',
  ],
  ...['place', 'placement', 'reverse_dns_told', 'stock'],
  ...['audit_unlinked', 'chain_block', 'idempotency_key', 'login_tally', 'rate', 'secret_key', 'task'],
  ...['webhook', 'webhook_delivery', 'webhook_snapshot'],
];

/** More such tables, each with the column that the database alone fills in: no transfer can be dated back. */
const OWN_COLUMNS: Record<string, string> = { transfer: 'created_at' };

/** The functions that do for the service what its role may not do. */
const FUNCTIONS = ['delete_old_audit(int)', 'delete_old_events(text, text, int)'];

/** A role of the database, as the service uses it. */
export interface DatabaseRole {
  name: string;
  /** Whether it is a superuser, or has the tables. */
  isOwner: boolean;
}

/** Reads the role of a connection. */
export async function roleOf(client: pg.ClientBase): Promise<DatabaseRole> {
  const { rows } = await client.query(`
    select current_user as name, rolsuper or exists (
        select from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'
          and pg_has_role(current_user, relowner, 'USAGE')) as is_owner
      from pg_roles where rolname = current_user`);
  return { name: rows[0].name, isOwner: rows[0].is_owner };
}

/**
 * Gives a role the rights of the service, and takes all others. A new table can be read and written, and its rows stay.
 * @param owner a connection of the owner of the tables
 */
export async function grantRights(owner: pg.ClientBase, role: string): Promise<void> {
  const service = owner.escapeIdentifier(role);
  const { rows: tables } = await owner.query<{ name: string; columns: string[] }>(
    `select relname as name, array_agg(quote_ident(attname)) as columns
      from pg_class join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
      where relnamespace = current_schema()::regnamespace and relkind = 'r' group by 1`,
  );
  const schema = owner.escapeIdentifier((await owner.query('select current_schema() as name')).rows[0].name);
  const grants = tables.map(
    ({ name, columns }) => `grant ${rightsOn(name, columns)} on ${owner.escapeIdentifier(name)} to ${service};`,
  );
  await owner.query(`begin;
    grant usage on schema ${schema} to ${service};
    revoke all on all tables in schema ${schema} from ${service};
    ${grants.join('\n')}
    ${FUNCTIONS.map(
      // The function runs as the owner, so a temporary table of the caller must not stand in for a table.
      (name) =>
        `alter function ${name} set search_path = ${schema}, pg_temp; grant execute on function ${name} to ${service};`,
    ).join('\n')}
    commit`);
}

function rightsOn(table: string, columns: string[]): string {
  if (table === 'migrations') return 'select';
  const own = OWN_COLUMNS[table];
  if (own) return `select, insert (${columns.filter((name) => name !== own).join(', ')})`;
  if (APPEND_ONLY.includes(table)) return 'select, insert';
  return `select, update, insert${DELETABLE.includes(table) ? ', delete' : ''}`;
}
