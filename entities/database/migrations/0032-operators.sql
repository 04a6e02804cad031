-- Named operators. Ended ones stay, because the audit log names them.
create table operator (
  id text primary key,
  name text not null,
  role text not null check (role in ('OWNER', 'BILLING', 'SUPPORT', 'READ_ONLY')),
  state text not null check (state in ('ACTIVE', 'ENDED')),
  token_digest bytea not null,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  ended_at timestamptz(3)
);
create unique index operator_token on operator (token_digest);
create unique index operator_name on operator (lower(name)) where state = 'ACTIVE';
