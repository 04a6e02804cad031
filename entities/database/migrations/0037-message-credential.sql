-- The credential that wrote a message of a customer.
alter table message add column credential_id text;
