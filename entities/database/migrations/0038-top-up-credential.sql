-- The credential that opened a top-up.
alter table top_up add column credential_id text;
