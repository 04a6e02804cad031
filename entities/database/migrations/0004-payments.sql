-- The ledger, top-ups, the payments that fund them, and the chains on which they arrive.

-- Guards the transfers, and the canary too.
create function refuse_change() returns trigger language plpgsql as $$
    begin raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation'; end $$;

create table balance (
  account_id text primary key,
  available_micros bigint not null default 0 constraint balance_available_not_negative check (available_micros >= 0),
  held_micros bigint not null default 0 constraint balance_held_not_negative check (held_micros >= 0),
  updated_at timestamptz(3) not null default now()
);

create table transfer (
  id text primary key,
  account_id text not null,
  kind text not null
    check (kind in ('topup', 'bonus', 'hold', 'capture', 'release', 'renewal', 'refund', 'adjustment')),
  debit text not null,
  credit text not null,
  amount_micros bigint not null constraint transfer_positive check (amount_micros > 0),
  external_key text not null,
  order_number text,
  service_code text,
  description text not null,
  period_from timestamptz(3),
  period_to timestamptz(3),
  credential_id text,
  created_at timestamptz(3) not null default now(),
  constraint transfer_two_sides check (debit <> credit)
);
create unique index transfer_external_key on transfer (external_key);
create index transfer_account on transfer (account_id, id);
create index transfer_credential on transfer (credential_id, created_at) where credential_id is not null;
create trigger transfer_append_only before update or delete on transfer for each row execute function refuse_change();
create trigger transfer_no_truncate before truncate on transfer for each statement execute function refuse_change();

create table top_up (
  id text primary key,
  account_id text not null,
  order_number text not null,
  status text not null check (status in ('PENDING', 'CONFIRMING', 'CONFIRMED', 'EXPIRED', 'CANCELLED')),
  mode text not null check (mode in ('CRYPTO', 'X402')),
  amount_micros bigint not null check (amount_micros > 0),
  bonus_micros bigint not null check (bonus_micros >= 0),
  crypto text not null,
  network text not null,
  amount_crypto text not null,
  received_crypto text not null,
  rate_micros bigint not null check (rate_micros > 0),
  wallet_address text,
  payment_uri text,
  reference text,
  confirmations int not null,
  confirmations_required int not null,
  tx_ids text[] not null default '{}',
  payment_exception text check (payment_exception in ('UNDERPAID', 'OVERPAID', 'LATE')),
  credited_micros bigint not null check (credited_micros >= 0),
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3),
  confirmed_at timestamptz(3)
);
create unique index top_up_order_number on top_up (order_number);
create index top_up_account on top_up (account_id, id);
create index top_up_address on top_up (network, wallet_address, created_at);

create table payment (
  id text primary key,
  network text not null,
  tx_id text not null,
  position int not null,
  coin text not null,
  address text not null,
  account_id text not null,
  order_number text not null,
  units text not null check (units ~ '^[1-9][0-9]{0,77}$'),
  status text not null
    check (status in ('SEEN', 'MINED', 'CREDITED', 'UNMATCHED', 'ORPHANED', 'REVERSED', 'WRITTEN_OFF')),
  height int,
  block_hash text,
  confirmations int not null default 0,
  seen_at timestamptz(3) not null,
  quoted_units text check (quoted_units ~ '^[0-9]{1,78}$'),
  rate_micros bigint,
  credited_micros bigint not null default 0 check (credited_micros >= 0),
  credited_at timestamptz(3),
  reversed_micros bigint not null default 0 check (reversed_micros between 0 and credited_micros),
  reversals int not null default 0,
  missing_since timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create unique index payment_key on payment (network, tx_id, position);
create index payment_top_up on payment (order_number, id);
create index payment_open on payment (network, order_number) where status in ('SEEN', 'MINED');
create index payment_block on payment (network, height);
create index payment_gone on payment (network)
  where status = 'CREDITED' and height is not null and block_hash is null;
create index payment_suspense on payment (id) where status in ('UNMATCHED', 'REVERSED');

create table x402_payment (
  id text primary key,
  account_id text not null,
  network text not null,
  payer text not null,
  nonce text not null,
  asset text not null,
  pay_to text not null,
  amount_micros bigint not null check (amount_micros > 0),
  valid_before timestamptz(3) not null,
  signature_digest bytea not null,
  sealed_payment bytea,
  request_mac bytea not null,
  status text not null
    check (status in ('SETTLING', 'SETTLED', 'FAILED', 'UNMATCHED', 'REVERSED', 'WRITTEN_OFF')),
  tx_id text,
  order_number text,
  credential_id text,
  sealed_answer bytea,
  leased_by text,
  lease_until timestamptz(3) not null,
  final_at timestamptz(3),
  reversed_micros bigint not null default 0 check (reversed_micros between 0 and amount_micros),
  created_at timestamptz(3) not null default now()
);
create unique index x402_payment_nonce on x402_payment (network, payer, nonce);
create index x402_payment_answered on x402_payment (created_at) where sealed_answer is not null;
create index x402_payment_suspense on x402_payment (id) where status in ('UNMATCHED', 'REVERSED');

create table chain (
  network text primary key,
  head int not null,
  height int,
  reached_at timestamptz(3)
);

create table chain_block (
  network text not null,
  height int not null,
  hash text not null,
  primary key (network, height)
);

create table deposit (
  source text primary key,
  next int not null
);

create table coin_rate (
  coin text not null,
  source text not null,
  rate_micros bigint not null check (rate_micros > 0),
  observed_at timestamptz(3) not null,
  primary key (coin, source)
);

create table coin_switch (
  code text primary key,
  available boolean not null,
  updated_at timestamptz(3) not null default now()
);
