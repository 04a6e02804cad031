-- The call that undoes a failed change of a server, until a worker has done it.
alter table server add column remedy text check (remedy in ('rebuild', 'resize'));
update server set remedy = replace(failure_code, '_failed', '')
from task where subject = order_number and step = 'undo' and failure_code in ('rebuild_failed', 'resize_failed');
