-- When the customer last had a delivery repeated. It limits repetitions.
alter table webhook_delivery add column redelivered_at timestamptz(3);
create index webhook_delivery_redelivered on webhook_delivery (webhook_id, redelivered_at) where redelivered_at is not null;

-- The parts of the sums of usage: top-ups with bonuses, and what was spent. The rest of a sum are adjustments.
alter table usage_day
  add column topped_up_micros bigint not null default 0,
  add column spent_micros bigint not null default 0;
update usage_day set topped_up_micros = parts.topped_up, spent_micros = parts.spent from (
  select account_id, (created_at at time zone 'UTC')::date as day,
    coalesce(sum(signed) filter (where kind in ('topup', 'bonus')), 0) as topped_up,
    coalesce(-sum(signed) filter (where kind not in ('topup', 'bonus', 'adjustment')), 0) as spent
  from transfer cross join lateral (
    select case when credit = 'available:' || account_id then amount_micros else -amount_micros end as signed) as change
  where 'available:' || account_id in (debit, credit) group by 1, 2) as parts
where usage_day.account_id = parts.account_id and usage_day.day = parts.day;

create or replace function add_usage() returns trigger language plpgsql as $$
    begin
      insert into usage_day as known (account_id, day, total_micros, topped_up_micros, spent_micros)
        select account_id, (created_at at time zone 'UTC')::date, sum(signed),
            coalesce(sum(signed) filter (where kind in ('topup', 'bonus')), 0),
            coalesce(-sum(signed) filter (where kind not in ('topup', 'bonus', 'adjustment')), 0)
          from written cross join lateral (
            select case when credit = 'available:' || account_id then amount_micros else -amount_micros end as signed) as change
          where 'available:' || account_id in (debit, credit) group by 1, 2 order by 1, 2
        on conflict (account_id, day) do update set total_micros = known.total_micros + excluded.total_micros,
          topped_up_micros = known.topped_up_micros + excluded.topped_up_micros,
          spent_micros = known.spent_micros + excluded.spent_micros;
      return null;
    end $$;
