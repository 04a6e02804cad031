/** The first tables. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Initial0000000000001 implements MigrationInterface {
  readonly name = 'Initial0000000000001';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [ACCOUNTS, LEDGER, CATALOG, ORDERS, RECORDS, TASKS]) await runner.query(statements);
  }

  async down(): Promise<void> {
    throw new Error('There is nothing before the first migration. Drop the database instead.');
  }
}

const ACCOUNTS = `
  create table account (
    id text primary key,
    kind text not null check (kind in ('PERSON', 'AGENT')),
    email text,
    password_hash text,
    totp_enabled boolean not null default false,
    pgp_fingerprint text,
    low_balance_alert_days int not null default 7,
    created_at timestamptz(3) not null default now()
  );
  create unique index account_email on account (email);

  create table session (
    id text primary key,
    account_id text not null,
    family_id text not null,
    source text not null,
    user_agent text,
    scope text not null,
    access_digest bytea not null,
    refresh_digest bytea,
    expires_at timestamptz(3) not null,
    refresh_expires_at timestamptz(3) not null,
    family_expires_at timestamptz(3) not null,
    created_at timestamptz(3) not null default now(),
    last_used_at timestamptz(3),
    revoked_at timestamptz(3)
  );
  create unique index session_access on session (access_digest);
  create unique index session_refresh on session (refresh_digest);
  create index session_account on session (account_id, id);

  create table api_key (
    id text primary key,
    account_id text not null,
    name text not null,
    scope text not null,
    prefix text not null,
    digest bytea not null,
    status text not null check (status in ('ACTIVE', 'EXPIRED', 'REVOKED')),
    ip_allowlist text[] not null default '{}',
    spend_limit_micros bigint,
    created_at timestamptz(3) not null default now(),
    last_used_at timestamptz(3),
    expires_at timestamptz(3),
    revoked_at timestamptz(3)
  );
  create unique index api_key_digest on api_key (digest);
  create index api_key_account on api_key (account_id, id);

  create table ssh_key (
    id text primary key,
    account_id text not null,
    name text not null,
    public_key text not null,
    type text not null,
    bits int not null,
    fingerprint text not null,
    created_at timestamptz(3) not null default now()
  );
  create index ssh_key_account on ssh_key (account_id, id);
  create unique index ssh_key_fingerprint on ssh_key (account_id, fingerprint);`;

const LEDGER = `
  create table balance (
    account_id text primary key,
    available_micros bigint not null default 0 constraint balance_available_not_negative check (available_micros >= 0),
    held_micros bigint not null default 0 constraint balance_held_not_negative check (held_micros >= 0),
    updated_at timestamptz(3) not null default now()
  );

  create table transfer (
    id text primary key,
    account_id text not null,
    kind text not null check (kind in ('topup', 'bonus', 'hold', 'capture', 'release', 'renewal', 'refund', 'adjustment')),
    debit text not null,
    credit text not null,
    amount_micros bigint not null constraint transfer_positive check (amount_micros > 0),
    external_key text not null,
    order_number text,
    service_code text,
    description text not null,
    period_from timestamptz(3),
    period_to timestamptz(3),
    created_at timestamptz(3) not null default now(),
    constraint transfer_two_sides check (debit <> credit)
  );
  create unique index transfer_external_key on transfer (external_key);
  create index transfer_account on transfer (account_id, id);

  create function refuse_change() returns trigger language plpgsql as $$
    begin raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation'; end $$;
  create trigger transfer_append_only before update or delete on transfer for each row execute function refuse_change();
  create trigger transfer_no_truncate before truncate on transfer for each statement execute function refuse_change();`;

const CATALOG = `
  create table catalog_item (
    code text primary key check (code ~ '^[a-z0-9][a-z0-9.-]{0,31}$' and code not in ('vps', 'dedicated', 'bastions', 'images')),
    kind text not null check (kind in ('vps', 'dedicated', 'bastion', 'image')),
    name text not null,
    position int not null,
    price_month_micros bigint,
    setup_fee_micros bigint,
    details jsonb not null,
    offered boolean not null default true
  );

  create table stock (
    region_code text not null,
    service_code text not null,
    total int not null,
    claimed int not null default 0,
    primary key (region_code, service_code),
    constraint stock_claimed check (claimed between 0 and total)
  );

  create table address (
    address inet primary key,
    family text not null check (family in ('IPV4', 'IPV6')),
    region_code text not null,
    held_by text,
    free_at timestamptz(3)
  );
  create index address_free on address (region_code, family, address) where held_by is null;
  create index address_held_by on address (held_by) where held_by is not null;`;

const ORDERS = `
  create table server (
    id text primary key,
    account_id text not null,
    order_number text not null,
    kind text not null check (kind in ('VPS', 'DEDICATED')),
    status text not null check (status in ('PENDING', 'PROVISIONING', 'RUNNING', 'STARTING', 'STOPPING', 'STOPPED', 'REBOOTING',
      'REBUILDING', 'RESIZING', 'SUSPENDED', 'FAILED', 'DELETING', 'DELETED')),
    hostname text not null,
    service_code text not null,
    region text not null,
    os text not null,
    generation int not null default 1,
    ipv4 inet,
    ipv6 inet,
    ipv6_prefix text,
    reverse_dns jsonb not null default '[]',
    ssh_key_ids text[] not null default '{}',
    ssh_public_keys text[] not null default '{}',
    user_data text,
    root_password bytea,
    labels jsonb not null default '{}',
    auto_renew boolean not null default true,
    delete_protection boolean not null default false,
    price_month_micros bigint not null check (price_month_micros >= 0),
    setup_fee_micros bigint not null check (setup_fee_micros >= 0),
    paid_until timestamptz(3),
    failure_code text,
    failure_message text,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now()
  );
  create unique index server_order_number on server (order_number);
  create index server_account on server (account_id, id);
  create index server_live on server (account_id, id) where status <> 'DELETED';

  create table top_up (
    id text primary key,
    account_id text not null,
    order_number text not null,
    status text not null check (status in ('PENDING', 'CONFIRMING', 'CONFIRMED', 'EXPIRED', 'CANCELLED')),
    mode text not null check (mode in ('CRYPTO', 'X402')),
    amount_micros bigint not null check (amount_micros > 0),
    bonus_micros bigint not null check (bonus_micros >= 0),
    crypto text not null,
    network text not null,
    amount_crypto text not null,
    received_crypto text not null,
    rate_micros bigint not null check (rate_micros > 0),
    wallet_address text,
    payment_uri text,
    confirmations int not null,
    confirmations_required int not null,
    tx_ids text[] not null default '{}',
    payment_exception text check (payment_exception in ('UNDERPAID', 'OVERPAID', 'LATE')),
    credited_micros bigint not null check (credited_micros >= 0),
    created_at timestamptz(3) not null default now(),
    expires_at timestamptz(3),
    confirmed_at timestamptz(3)
  );
  create unique index top_up_order_number on top_up (order_number);
  create index top_up_account on top_up (account_id, id);`;

const RECORDS = `
  create table event (
    id text primary key,
    account_id text not null,
    type text not null,
    subject text not null,
    data jsonb not null,
    created_at timestamptz(3) not null default now()
  );
  create index event_account on event (account_id, id);
  create index event_subject on event (account_id, subject, id);

  create table audit_entry (
    id text primary key,
    account_id text not null,
    action text not null,
    actor_type text not null,
    actor_id text,
    actor_name text,
    resource_type text not null,
    resource_id text not null,
    request_id text,
    created_at timestamptz(3) not null default now()
  );
  create index audit_entry_account on audit_entry (account_id, id);`;

const TASKS = `
  create table task (
    id text primary key,
    lane text not null,
    process text not null,
    subject text not null,
    account_id text not null,
    step text not null,
    data jsonb not null default '{}',
    run_at timestamptz(3) not null default now(),
    leased_by text,
    fence bigint not null default 0,
    signals int not null default 0,
    attempts int not null default 0,
    error text,
    state text not null default 'READY' check (state in ('READY', 'DEAD')),
    deadline_at timestamptz(3),
    created_at timestamptz(3) not null default now()
  ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
  create unique index task_subject on task (subject);
  create index task_due on task (lane, run_at) where state = 'READY';`;
