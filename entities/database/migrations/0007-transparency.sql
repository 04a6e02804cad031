-- The warrant canary, peering, incidents, and the health of the parts.

create table canary (
  id text primary key,
  version text not null,
  issued_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  codes text[] not null default '{}',
  statement text not null,
  signed_text text,
  fingerprint text,
  public_key text,
  freshness text,
  sha256 text not null,
  previous_sha256 text,
  created_at timestamptz(3) not null default now()
);
create trigger canary_append_only before update or delete on canary for each row execute function refuse_change();

create table peering (
  id text primary key check (id = 'peering'),
  document jsonb not null,
  updated_at timestamptz(3) not null default now()
);

create table incident (
  id text primary key,
  name text not null,
  status text not null check (status in
    ('INVESTIGATING', 'IDENTIFIED', 'MONITORING', 'RESOLVED', 'SCHEDULED', 'IN_PROGRESS', 'COMPLETED')),
  impact text not null check (impact in ('NONE', 'MINOR', 'MAJOR', 'CRITICAL', 'MAINTENANCE')),
  components text[] not null default '{}',
  started_at timestamptz(3) not null,
  resolved_at timestamptz(3),
  updates jsonb not null
);

create unlogged table health (
  component text primary key,
  status text not null check (status in ('operational', 'partial_outage', 'major_outage')),
  checked_at timestamptz(3) not null default now()
);
