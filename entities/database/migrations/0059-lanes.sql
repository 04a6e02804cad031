-- Accounts that never paid have lanes of their own, whose names end in -free. Versions before this one take no tasks from them,
-- so they must not start again.
comment on index task_due is 'Also of the lanes of accounts that never paid, which end in -free.';
