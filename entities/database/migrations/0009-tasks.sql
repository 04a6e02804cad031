-- Work that a worker carries out later.

-- Nearly every step updates its row, so the table is vacuumed by the number of dead rows and not by its size.
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
create index task_due on task (lane, run_at) where state = 'READY';
