-- Transfers form a hash chain, whose head is signed with those of the audit log. They name only accounts of the ledger.

-- The chain of the ledger has this name, so no account may have it.
alter table audit_entry add constraint audit_entry_account_check check (account_id <> 'ledger');

-- A system account, a gateway, or an account of the customer of the transfer.
create function is_ledger_account(name text, customer text) returns boolean immutable language sql as $$
    select name in ('revenue', 'bonus', 'adjustment', 'suspense', 'payouts', 'fees', 'exchange')
      or name ~ '^(gateway|wallet):\S+$'
      or name in ('available:' || customer, 'held:' || customer, 'owed:' || customer, 'withheld:' || customer) $$;
alter table transfer
  add constraint transfer_accounts_check check (is_ledger_account(debit, account_id) and is_ledger_account(credit, account_id)),
  add constraint transfer_balance foreign key (account_id) references balance;

insert into audit_unlinked (entry_id) select id from transfer;
create trigger transfer_unlinked after insert on transfer
  referencing new table as written for each statement execute function note_unlinked();

create or replace function admit_link() returns trigger language plpgsql as $$
    begin
      if not exists (select from audit_entry where id = new.entry_id and account_id = new.account_id)
          and not (new.account_id = 'ledger' and exists (select from transfer where id = new.entry_id)) then
        raise exception 'audit_link takes links of entries of their account' using errcode = 'integrity_constraint_violation';
      end if;
      if new.number <> (select coalesce(max(number), 0)::numeric + 1 from audit_link where account_id = new.account_id) then
        raise exception 'audit_link takes the next number of a chain' using errcode = 'integrity_constraint_violation';
      end if;
      return new;
    end $$;
create or replace function refuse_link_delete() returns trigger language plpgsql as $$
    begin
      if exists (select from audit_entry where id = old.entry_id) or exists (select from transfer where id = old.entry_id) then
        raise exception 'audit_link keeps the links of entries' using errcode = 'integrity_constraint_violation';
      end if;
      return old;
    end $$;
-- Temporary tables of the caller must not stand in for the tables.
do $$ begin
  execute format('alter function admit_link() set search_path = %I, pg_temp', current_schema());
end $$;
-- A session that began with an empty table would keep its plan without the index.
alter function admit_link() set enable_seqscan = off;

-- Deposit addresses: their numbers, which a restored database must not repeat, and the database that gave the last one.
alter table deposit add column database_id text;
alter table top_up add column deposit int;
-- The chain sync finds the top-ups of a block by the addresses of the block, in lower case.
drop index top_up_address;
create index top_up_address on top_up (lower(wallet_address), created_at);
create index payment_elsewhere on payment (address) where order_number is null;

-- The code of each token contract when the service first used it.
create table token_code (
  network text not null,
  contract text not null,
  code_hash text not null,
  noted_at timestamptz(3) not null default now(),
  primary key (network, contract)
);

-- Coins that leave the gateways.
-- A payout returns a payment before it has a transaction.
alter table payment
  drop constraint payment_returned_check,
  add constraint payment_returned_check check (status = 'RETURNED' or return_tx_id is null);
create table payout (
  id text primary key,
  key text not null unique,
  account_id text not null references balance,
  payment_id text references payment,
  status text not null check (status in ('REQUESTED', 'EXPORTED', 'BROADCAST', 'FINAL', 'CANCELLED')),
  source text not null check (source ~ '^(gateway|wallet):\S+$'),
  network text not null,
  coin text not null,
  decimals int not null check (decimals between 0 and 36),
  address text not null,
  signature text,
  units text not null check (units ~ '^[1-9][0-9]{0,77}$'),
  amount_micros bigint not null check (amount_micros > 0),
  tx_id text,
  replaced_tx_ids text[] not null default '{}',
  exported_at timestamptz(3),
  reason text not null,
  created_at timestamptz(3) not null default now()
);
create index payout_open on payout (id) where status in ('REQUESTED', 'EXPORTED', 'BROADCAST');
create table movement (
  id text primary key,
  source text not null check (source ~ '^(gateway|wallet):\S+$'),
  target text not null check (target in ('payouts', 'fees') or target ~ '^(gateway|wallet):\S+$'),
  coin text not null,
  units text not null check (units ~ '^[1-9][0-9]{0,77}$'),
  amount_micros bigint not null check (amount_micros >= 0),
  tx_id text not null,
  payout_id text references payout,
  created_at timestamptz(3) not null default now(),
  check (source <> target)
);
create unique index movement_key on movement (tx_id, source, target, coin, coalesce(payout_id, ''));

-- Closed months, with the totals of their transfers.
create table closed_month (
  month text primary key check (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
  transfers int not null,
  totals jsonb not null,
  closed_at timestamptz(3) not null default now()
);

-- A payment in suspense can become final, and its coins go back only then.
alter table payment
  drop constraint payment_final_check,
  add constraint payment_final_check check (case
    when status in ('FINAL', 'RETURNED') then final_at is not null
    when status in ('UNMATCHED', 'ASSIGNED', 'WRITTEN_OFF') then true
    else final_at is null end);
-- The service takes an older payment from a processor for final, as it does one in the balance.
update payment set final_at = created_at where status = 'UNMATCHED' and mode = 'CRYPTO' and height is null;
