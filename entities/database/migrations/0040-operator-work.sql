-- What operators control: the limit of a network by an open case of abuse.
alter table abuse_case add column limited_at timestamptz(3);
create index abuse_case_limit on abuse_case (order_number) where state = 'OPEN' and limited_at is not null;
-- The later of two operators hears of the change by the earlier one.
alter table host add column revision int not null default 1;
