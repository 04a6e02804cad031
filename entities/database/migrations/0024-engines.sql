-- Engines as rows. Those of the environment keep the names of their drivers, by which hosts, findings and circuit breakers know
-- them. An engine can make several kinds of machines.
alter table engine
  drop constraint engine_pkey,
  add column kinds text[];
alter table engine rename column driver to name;
update engine set kinds = (select array_agg(other.kind order by other.kind desc) from engine other where other.name = engine.name);
delete from engine using engine other where other.name = engine.name and other.kind > engine.kind;
alter table engine
  drop column kind,
  alter column kinds set not null,
  add primary key (name),
  add constraint engine_name_check check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
  add constraint engine_kinds_check check (kinds <> '{}' and kinds <@ array['VPS', 'DEDICATED']),
  add column state text not null default 'ACTIVE' check (state in ('ACTIVE', 'DRAINED')),
  add column region_code text,
  add column connection jsonb,
  add column client_key bytea,
  add column revision int not null default 1,
  add column product text check (product in ('LXD', 'INCUS')),
  add column version text,
  add column members jsonb not null default '[]',
  add column images text[],
  add column seen_at timestamptz(3),
  add column trouble text,
  add column trouble_at timestamptz(3),
  add column created_at timestamptz(3) not null default now(),
  add column updated_at timestamptz(3) not null default now(),
  alter column client_key set statistics 0,
  add constraint engine_client_key_check check (client_key is null or connection is not null),
  add constraint engine_trouble_check check ((trouble is null) = (trouble_at is null));

alter table finding
  drop constraint finding_kind_check,
  add constraint finding_kind_check
    check (kind in ('ORPHAN', 'LOST', 'POWER', 'SIZE', 'IMAGE', 'MISPLACED', 'CAPACITY', 'INCOMPLETE', 'STUCK', 'TRAFFIC'));

-- The operator's engine that has the machine of a server. Null: the engine of the environment.
alter table server add column engine text;
-- Each look reads the servers of one engine. An expression finds also those of null by the index.
create index server_engine on server (coalesce(engine, '')) where status <> 'DELETED';
