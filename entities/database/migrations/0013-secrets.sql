-- Sealed values have the id of their key. Everything that only SECRET_KEY protects is sealed, so that a new key can
-- replace it. The first start after this migration seals what is not sealed yet: entities/secret-key.ts.

-- The keys under which the database has values. Each row has a value that its key has sealed.
create table secret_key (
  id bytea primary key,
  canary bytea not null,
  created_at timestamptz(3) not null default now()
);

-- The digests of an account one after the other, until the first start seals them.
alter table totp add column recovery_codes bytea;
update totp set recovery_codes = (
  select string_agg(digest, ''::bytea order by digest) from recovery_code where recovery_code.account_id = totp.account_id);
drop table recovery_code;

-- These answers were kept for a day at most, under keys that the service does not have.
delete from idempotency_key;
alter table idempotency_key drop column input_mac;
update x402_payment set sealed_payment = null, sealed_answer = null where num_nonnulls(sealed_payment, sealed_answer) > 0;
alter table x402_payment drop column request_mac;
alter table x402_payment add column sealed_request bytea;

-- Machines that have booted do not need it any more.
alter table server alter column user_data type bytea
  using case when status in ('PENDING', 'PROVISIONING') then convert_to(user_data, 'UTF8') end;
update server set user_data = convert_to(change ->> 'userData', 'UTF8'), change = change - 'userData'
  where change ? 'userData';
update webhook_delivery set snapshot = snapshot #- '{change,userData}' where snapshot -> 'change' ? 'userData';

-- The secret before the last rotation also signs until that time.
alter table webhook add column previous_secret bytea;
alter table webhook add column previous_secret_until timestamptz(3);
alter table webhook add check ((previous_secret is null) = (previous_secret_until is null));
create index webhook_rotated on webhook (previous_secret_until) where previous_secret_until is not null;
