-- The payments that an account awaits, or has and may lose again. The service keeps its last credential while it has any.
create index payment_pending_account on payment (account_id)
  where status in ('OBSERVED', 'CONFIRMING', 'CREDITED', 'ASSIGNED', 'UNMATCHED', 'REVERSED');
drop index payment_unfinal_account;
