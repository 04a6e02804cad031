-- The suspended accounts, which are few.
create index concurrently account_suspended on account (id) where suspended_at is not null;
