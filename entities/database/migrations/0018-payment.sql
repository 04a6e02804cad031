-- One table of payments. An authorization of x402 is a detail row of its payment.

alter table payment
  add column mode text not null default 'CRYPTO' check (mode in ('CRYPTO', 'X402')),
  add column external_key text,
  add column final_at timestamptz(3),
  add column return_tx_id text,
  alter column tx_id drop not null,
  alter column position drop not null,
  alter column order_number drop not null,
  drop constraint payment_status_check;
alter table payment alter column mode drop default;

drop index payment_key;
drop index payment_open;
drop index payment_gone;
drop index payment_suspense;

update payment set external_key = 'pay:' || network || ':' || tx_id || ':' || position,
  status = case
    when status = 'SEEN' then 'OBSERVED'
    when status = 'MINED' then 'CONFIRMING'
    when status = 'ORPHANED' then 'DROPPED'
    -- A wallet or processor reported it, and the service takes nothing back on their word.
    when status = 'CREDITED' and height is null then 'FINAL'
    when status = 'CREDITED' and exists (select from transfer where external_key = 'assign:' || payment.id) then 'ASSIGNED'
    else status end,
  final_at = case when status = 'CREDITED' and height is null then coalesce(credited_at, now()) end;

-- An older row names the contract of the token. Its coin is that of top-ups that were paid in the same way.
insert into payment (id, mode, external_key, network, tx_id, coin, address, account_id, order_number, units, status, seen_at,
    credited_micros, credited_at, reversed_micros, reversals, final_at, created_at)
  select id, 'X402', external_key, network, tx_id,
    coalesce(crypto, case when network in ('eip155:8453', 'eip155:84532') then 'USDC-BASE' else asset end),
    pay_to, account_id, order_number, amount_micros::text,
    case
      when status = 'SETTLING' then 'OBSERVED'
      when status = 'FAILED' then 'DROPPED'
      when status = 'SETTLED' and final_at is not null then 'FINAL'
      when status = 'SETTLED' and exists (select from transfer where external_key = 'assign:' || old.id) then 'ASSIGNED'
      when status = 'SETTLED' then 'CREDITED'
      else status end,
    created_at,
    case when status in ('SETTLING', 'FAILED') then 0 else amount_micros end,
    case when status not in ('SETTLING', 'FAILED', 'UNMATCHED') then
      (select created_at from transfer where external_key in (old.external_key, 'assign:' || old.id) order by id desc limit 1) end,
    reversed_micros,
    case when status = 'REVERSED' or status = 'WRITTEN_OFF' and exists (
      select from transfer where external_key in ('reverse:' || old.external_key, 'loss:' || old.external_key)) then 1 else 0 end,
    final_at, created_at
  from (select *, 'x402:' || network || ':' || payer || ':' || nonce as external_key from x402_payment) as old
    left join (
      select distinct on (1) lower(wallet_address) as pay_to, crypto from top_up where mode = 'X402' order by 1, id desc) as paid
      using (pay_to);

alter table x402_payment rename to x402_authorization;
alter table x402_authorization rename column id to payment_id;
alter index x402_payment_pkey rename to x402_authorization_pkey;
drop index x402_payment_nonce;
drop index x402_payment_answered;
drop index x402_payment_suspense;
alter table x402_authorization
  drop column account_id,
  drop column network,
  drop column pay_to,
  drop column amount_micros,
  drop column status,
  drop column tx_id,
  drop column order_number,
  drop column final_at,
  drop column reversed_micros,
  drop column created_at;
create index x402_authorization_answered on x402_authorization (payment_id) where sealed_answer is not null;

alter table payment
  alter column external_key set not null,
  add constraint payment_status_check check (status in ('OBSERVED', 'CONFIRMING', 'CREDITED', 'FINAL', 'UNMATCHED', 'ASSIGNED',
    'DROPPED', 'REVERSED', 'WRITTEN_OFF', 'RETURNED')),
  add constraint payment_parts_check
    check (mode = 'X402' and position is null or mode = 'CRYPTO' and num_nulls(tx_id, position) = 0),
  add constraint payment_final_check check ((status = 'FINAL') = (final_at is not null)),
  add constraint payment_returned_check check ((status = 'RETURNED') = (return_tx_id is not null));
create unique index payment_external_key on payment (external_key);
create index payment_open on payment (network, order_number) where status in ('OBSERVED', 'CONFIRMING');
create index payment_unfinal on payment (network, height) where status in ('CREDITED', 'ASSIGNED');
create index payment_suspense on payment (network, height) where status in ('UNMATCHED', 'REVERSED', 'WRITTEN_OFF');

-- The operator can look up a transaction to an address that belongs to a top-up on another network.
drop index top_up_address;
create index top_up_address on top_up (wallet_address, network, created_at);

-- Debts of reversed payments, refunds that wait for payments to become final, and orders that gave no proof.

alter table balance
  add column owed_micros bigint not null default 0 constraint balance_owed_not_negative check (owed_micros >= 0),
  add column withheld_micros bigint not null default 0 constraint balance_withheld_not_negative check (withheld_micros >= 0);
create index balance_withheld on balance (account_id) where withheld_micros > 0;
create index payment_unfinal_account on payment (account_id) where status in ('CREDITED', 'ASSIGNED');

alter table top_up add column reversed_bonus_micros bigint not null default 0
  check (reversed_bonus_micros between 0 and bonus_micros);

-- Suspense gets the whole of each reversed payment. A written-off one was the loss of the operator, and is owed from now on.
create temporary table shortage on commit drop as
  select id, account_id, order_number, external_key, credited_micros - reversed_micros as micros,
    case status when 'REVERSED' then 'suspense' else 'adjustment' end as credit
  from payment where status in ('REVERSED', 'WRITTEN_OFF') and reversals > 0 and credited_micros > reversed_micros;
insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, order_number, description)
  select 'xfr_' || substr(id, 5), account_id, 'adjustment', 'owed:' || account_id, credit, micros, 'owe:' || external_key,
    order_number, 'Debt of a reversed payment'
  from shortage;
create temporary table debt on commit drop as
  select account_id, owed, least(owed, available_micros) as paid
  from (select account_id, sum(micros) as owed from shortage group by 1) as owing join balance using (account_id);
insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
  select 'xfr_' || substr(account_id, 6), account_id, 'adjustment', 'available:' || account_id, 'owed:' || account_id, paid,
    'debt:' || account_id, 'Debt of a reversed payment'
  from debt where paid > 0;
update balance set available_micros = available_micros - paid, owed_micros = owed - paid
  from debt where debt.account_id = balance.account_id;
alter table payment drop column reversed_micros;

-- The credited sum of a top-up leaves out the payments that its chain has removed.
update top_up set credited_micros = top_up.credited_micros - removed.micros
  from (
    select order_number, sum(payment.credited_micros) as micros from payment join top_up using (order_number)
    where payment.status in ('REVERSED', 'WRITTEN_OFF') and reversals > 0 and (coin = crypto or payment.mode = 'X402')
    group by 1) as removed
  where removed.order_number = top_up.order_number;

-- The debt stands for the suspension by a reversal, so that the account may top up.
update account set suspended_for = null, suspended_at = null
  where suspended_for = 'The chain has removed a payment of this account.';

-- When an order whose machine gave no proof ended.
alter table server add column unproven_at timestamptz(3);
create index server_unproven on server (account_id, unproven_at) where unproven_at is not null;

drop index server_due;
create index server_due on server (paid_until)
  where status in ('RUNNING', 'STOPPED', 'STARTING', 'STOPPING', 'REBOOTING', 'REBUILDING');

-- What each chain cannot remove any more, what keeps it from being read, and when each payment came into its block.

alter table chain
  add column final_height int,
  add column problem text;
update chain set final_height = (select max(height) from payment where payment.network = chain.network and status = 'FINAL');

alter table payment add column mined_at timestamptz(3);
-- Until now the time of a payment in a block was that of its block, if the service had not seen it before.
update payment set mined_at = seen_at where confirmations > 0 or block_hash is not null;

-- How often the service sent an authorization, and the gas that its reverted transactions took.

alter table x402_authorization
  add column sends int not null default 0 check (sends >= 0),
  add column sent_tx_id text,
  add column key_digest bytea,
  add column reverted_gas bigint not null default 0 check (reverted_gas >= 0);
-- The service sent an older payment at least once.
update x402_authorization set sends = 1;
alter table x402_authorization alter column sends drop default;
create index x402_authorization_payer on x402_authorization (payer, payment_id);
create index x402_authorization_reverted on x402_authorization (valid_before) where reverted_gas > 0;
create index x402_authorization_key on x402_authorization (key_digest) where key_digest is not null;
create index payment_x402_open on payment (account_id) where mode = 'X402' and status = 'OBSERVED';

-- Whether payer and account have less open payments than a limit, and no payment with the idempotency key is in the balance, or
-- may come into it. The function locks payer and account, and then reads in a snapshot of its own. So concurrent requests
-- cannot exceed the limit, or pay twice with one key.
create function may_open_x402(of_payer text, of_account text, open_max int, of_key bytea) returns boolean
  language plpgsql volatile as $$
    begin
      perform pg_advisory_xact_lock(hashtextextended('x402 payer ' || of_payer, 0));
      perform pg_advisory_xact_lock(hashtextextended('x402 account ' || of_account, 0));
      return open_max > greatest(
        (select count(*) from payment where account_id = of_account and mode = 'X402' and status = 'OBSERVED'),
        (select count(*) from x402_authorization join payment on payment_id = id
          where payer = of_payer and status = 'OBSERVED'))
        and not exists (select from x402_authorization join payment on payment_id = id
          where key_digest = of_key and status in ('OBSERVED', 'CREDITED', 'FINAL') and created_at > now() - interval '1 day');
    end $$;
