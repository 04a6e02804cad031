-- Lists and periodic work that read more rows because others have many. Each gets an index of the few rows that it looks for.
create index server_rare on server (status, id) where status not in ('RUNNING', 'DELETED');
create index top_up_open on top_up (status, id) where status in ('PENDING', 'CONFIRMING');
create index task_stuck on task (state, run_at) where state = 'DEAD' or error is not null;
create index webhook_delivery_ended on webhook_delivery (created_at, webhook_id) where next_attempt_at is null;
create index placement_moving on placement (order_number) where moving;
-- The table has the order of time, so a summary of each megabyte is enough.
create index transfer_time on transfer using brin (created_at) with (autosummarize = on);
