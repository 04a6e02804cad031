-- Ways back into an account without its password: a PGP key, and codes of which only digests are kept.
alter table account add column pgp_public_key text;
create table recovery_code (
  digest bytea primary key,
  account_id text not null,
  created_at timestamptz(3) not null default now()
);
create index recovery_code_account on recovery_code (account_id);
-- A challenge that only the key of the account can read. The account is null for an email without one.
create table recovery_challenge (
  id text primary key,
  account_id text,
  name text not null,
  digest bytea not null,
  tries int not null default 0,
  expires_at timestamptz(3) not null
);
create index recovery_challenge_ended on recovery_challenge (expires_at);
