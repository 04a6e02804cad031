-- A worker serves a signalled task before the polls of its party.
alter table task add column signalled boolean not null default false;
