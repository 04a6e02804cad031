-- Machines in outages.

-- The other side that a task calls, such as an engine or a host. Null: the account of the task.
alter table task add column party text;
-- Attempts at the step that an outage of the other side ended. They do not count.
alter table task add column outages int not null default 0;

-- The last words of the engine about the machine of a server, for the operator.
alter table server
  add column trouble text,
  add column trouble_at timestamptz(3),
  add constraint server_trouble_check check ((trouble is null) = (trouble_at is null));
create index server_trouble on server (trouble_at) where trouble_at is not null;

-- An order without proof is made again at once, so tasks of an earlier version skip two steps.
update task set step = 'prove' where process = 'server' and step in ('restart', 'remake');

alter table finding
  drop constraint finding_kind_check,
  add constraint finding_kind_check
    check (kind in ('ORPHAN', 'LOST', 'POWER', 'SIZE', 'IMAGE', 'INCOMPLETE', 'STUCK'));
