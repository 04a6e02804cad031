-- Operators change the catalog. A version tells the later of two operators of the earlier change.
alter table catalog_item add column version int not null default 1;

-- The sample catalog belongs to simulated machines. An installation that has run before keeps its rows.
alter table catalog_item add column sample boolean not null default false;
update catalog_item set sample = true where not exists (select from engine) and not exists (select from account);

-- The price of the next months of a server, once the notice is over.
alter table server add column next_price_micros bigint, add column next_price_from timestamptz(3);

create table bonus_tier (
  min_micros bigint primary key check (min_micros > 0),
  bonus_percent int not null check (bonus_percent between 1 and 100)
);
insert into bonus_tier (min_micros, bonus_percent)
values (100000000, 2), (500000000, 4), (1000000000, 6), (5000000000, 8);

-- A top-up keeps the bonuses of its time.
alter table top_up add column bonus_tiers jsonb not null default
  '[{"minMicros": 100000000, "bonusPercent": 2}, {"minMicros": 500000000, "bonusPercent": 4},
    {"minMicros": 1000000000, "bonusPercent": 6}, {"minMicros": 5000000000, "bonusPercent": 8}]';
alter table top_up alter column bonus_tiers set default '[]';
