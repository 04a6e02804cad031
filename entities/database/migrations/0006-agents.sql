-- The directory of agents.

create table agent (
  id text primary key,
  account_id text not null,
  slug text not null,
  name text not null,
  description text not null,
  url text not null,
  status text not null check (status in ('LISTED', 'UNLISTED', 'HIDDEN')),
  version text,
  provider_name text,
  provider_url text,
  documentation_url text,
  icon_url text,
  endpoints jsonb not null,
  skills jsonb not null,
  skill_terms text[] not null default '{}',
  public_key bytea,
  verified boolean not null default false,
  x402 boolean not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index agent_slug on agent (slug);
create index agent_account on agent (account_id, id);
create index agent_listed on agent (id) where status = 'LISTED';
