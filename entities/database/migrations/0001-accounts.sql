-- Accounts, and everything by which a caller proves to be one.

create table account (
  id text primary key,
  kind text not null check (kind in ('PERSON', 'AGENT')),
  email text,
  password_hash text,
  totp_enabled boolean not null default false,
  pgp_fingerprint text,
  low_balance_alert_days int not null default 7,
  low_balance_alerted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  suspended_at timestamptz(3),
  suspended_for text
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
  rotated_at timestamptz(3),
  revoked_at timestamptz(3)
);
create unique index session_access on session (access_digest);
create unique index session_refresh on session (refresh_digest);
create index session_account on session (account_id, id);
create index session_family on session (family_id);

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

create table oauth_client (
  id text primary key,
  account_id text not null,
  secret_digest bytea not null,
  scope text not null,
  grant_types text[] not null default '{}',
  auth_method text not null check (auth_method in ('client_secret_basic', 'client_secret_post')),
  redirect_uris text[] not null default '{}',
  metadata jsonb not null,
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3)
);
create index oauth_client_account on oauth_client (account_id, id);

create table totp (
  account_id text primary key,
  seed bytea not null,
  enabled_at timestamptz(3),
  setup_expires_at timestamptz(3) not null,
  last_step int not null default 0
);

create table recovery_code (
  account_id text not null,
  digest bytea not null,
  primary key (account_id, digest)
);

create table pending_login (
  id text primary key,
  account_id text not null,
  digest bytea not null,
  wrong_codes int not null default 0,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now()
);
create unique index pending_login_digest on pending_login (digest);
create index pending_login_account on pending_login (account_id, expires_at);

create unlogged table login_tally (
  key text primary key,
  failures double precision[] not null default '{}',
  under_way double precision[] not null default '{}',
  known_until double precision not null default 0,
  forget_at double precision not null
) with (fillfactor = 50);
create index login_tally_forget on login_tally (forget_at);

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
create unique index ssh_key_fingerprint on ssh_key (account_id, fingerprint);
