-- Operators who sign in: an invitation, a password, a second factor (in totp, under the operator's id), and sessions.
alter table operator
  add column password_hash text,
  add column invitation_digest bytea,
  add column invitation_expires_at timestamptz(3),
  alter column token_digest drop not null,
  alter column expires_at drop not null,
  drop constraint operator_state_check,
  add constraint operator_state_check check (state in ('INVITED', 'ACTIVE', 'ENDED'));
drop index operator_name;
create unique index operator_name on operator (lower(name)) where state <> 'ENDED';
create unique index operator_invitation on operator (invitation_digest);

create table operator_session (
  id text primary key,
  operator_id text not null,
  digest bytea not null,
  user_agent text,
  created_at timestamptz(3) not null default now(),
  used_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null
);
create unique index operator_session_digest on operator_session (digest);
create index operator_session_operator on operator_session (operator_id);

-- Sums that operators move while they have a limit. Those above it wait for another operator.
create table proposal (
  id text primary key,
  state text not null check (state in ('WITHIN_LIMIT', 'OPEN', 'APPROVED', 'REFUSED', 'EXPIRED')),
  kind text not null check (kind in ('ADJUSTMENT', 'PAYOUT', 'RETURN')),
  key text not null,
  account_id text not null,
  amount_micros bigint not null,
  reason text not null,
  payment_id text,
  coin text,
  address text,
  signature text,
  source text,
  proposer_id text not null,
  proposer_name text not null,
  decider_name text,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  decided_at timestamptz(3)
);
create unique index proposal_key on proposal (kind, key);
create index proposal_passed on proposal (proposer_id, created_at) where state = 'WITHIN_LIMIT';
create index proposal_open on proposal (id) where state = 'OPEN';

-- The limits of one account by their names. Those that it lacks are the ones of the configuration.
alter table account add column limits jsonb not null default '{}';
