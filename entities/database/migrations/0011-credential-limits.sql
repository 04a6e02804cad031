-- The limits of OAuth clients, and the limited credentials that created others.

alter table api_key add column limited_by text;

alter table oauth_client
  add column ip_allowlist text[] not null default '{}',
  add column spend_limit_micros bigint,
  add column expires_at timestamptz(3),
  add column limited_by text;

alter table webhook
  add column expires_at timestamptz(3),
  add column limited_by text;

alter table transfer add column limited_by text;
create index transfer_limited_by on transfer (limited_by, created_at) where limited_by is not null;

alter table x402_payment add column limited_by text;
