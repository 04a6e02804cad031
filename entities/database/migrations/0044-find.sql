-- An operator finds an account by the beginning of its email, by the domain of its email, or by the host name of a server.
create index account_email_beginning on account (email text_pattern_ops);
create index account_email_domain on account (substr(email, strpos(email, '@')), id);
create index server_hostname on server (hostname, id);
-- The console searches while the operator types. So each part of the search has its index.
create index payment_tx on payment (tx_id);
create index payment_address on payment (address);
create index api_key_prefix on api_key (prefix);
