-- A payout counts as money that never came, so it takes the bonus of that money back. Earlier payouts took none.
alter table payment add column paid_out_micros bigint not null default 0
  constraint payment_paid_out_micros_check check (paid_out_micros between 0 and credited_micros);
alter table payout add column taken_from jsonb not null default '[]'
  constraint payout_taken_from_check check (jsonb_typeof(taken_from) = 'array');
