-- Versions before this one take no tasks from the lanes of accounts that never paid.
comment on column task.lane is 'Accounts that never paid have lanes of their own, which end in -free.';
