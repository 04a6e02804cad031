-- Decisions about payments count in the limit of operators. A write-off keeps the state that the operator saw, and a return
-- the transaction that sent the coins.
alter table proposal drop constraint proposal_kind_check;
alter table proposal add constraint proposal_kind_check check (kind in ('ADJUSTMENT', 'PAYOUT', 'RETURN', 'WRITE_OFF'));
alter table proposal add column payment_status text, add column return_tx_id text;
create index proposal_payment on proposal (payment_id) where state = 'OPEN';
