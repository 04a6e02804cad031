-- Events, which subscribers hear of, and audit entries, which the account reads.

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
  resource_type text,
  resource_id text,
  request_id text,
  method text,
  path text,
  status int,
  created_at timestamptz(3) not null default now()
);
create index audit_entry_account on audit_entry (account_id, id);
create index audit_entry_action on audit_entry (account_id, action, id);
