-- Receipts and usage find the transfers of an account by their times. A process with another clock makes the ids.
create index transfer_account_time on transfer (account_id, created_at, id);
drop index transfer_account;
