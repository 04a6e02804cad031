-- The part of the bonuses that a payout takes back. Earlier payouts took none.
alter table payout add column bonus_micros bigint not null default 0
  constraint payout_bonus_micros_check check (bonus_micros >= 0);
