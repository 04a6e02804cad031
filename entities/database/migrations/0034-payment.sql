-- Finds the payments of an account whose gateway reports them no more.
create index payment_missing_account on payment (account_id) where status = 'FINAL' and missing_since is not null;
