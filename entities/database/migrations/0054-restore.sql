-- Tells the database from its copies, such as a restored one.
create table own_database (
  is_only boolean primary key default true check (is_only),
  database_id text not null
);

-- The numbers of deposit addresses that a lost time may have given out.
create table lost_deposit (
  source text not null,
  first int not null,
  beyond int not null check (beyond > first),
  primary key (source, first)
);

-- A restored database does not know all machines, so workers make none until the operator has looked.
alter table brake add column stops_orders boolean not null default false;
