-- Who had an address, and when. The operator answers complaints by it.
create table address_use (
  order_number text not null,
  address inet not null,
  held_from timestamptz(3) not null default now(),
  held_until timestamptz(3),
  primary key (order_number, address, held_from)
);
create index address_use_address on address_use (address, held_from);
create index address_use_ended on address_use (held_until) where held_until is not null;
insert into address_use (order_number, address, held_from)
  select order_number, address.address, server.created_at from address join server on order_number = held_by;

-- The servers of a suspended account that are off until the suspension ends.
alter table account add servers_off boolean not null default false,
  add constraint account_servers_off check (not servers_off or suspended_at is not null);
create index account_servers_off on account (id) where servers_off;
alter table server add kept_off boolean not null default false;
create index server_kept_off on server (account_id) where kept_off;

-- Complaints about addresses. One complaint opens one case.
create table abuse_case (
  id text primary key,
  account_id text not null,
  order_number text not null,
  source text not null,
  address inet not null,
  occurred_at timestamptz(3) not null,
  body text not null,
  deadline timestamptz(3) not null,
  state text not null default 'OPEN' check (state in ('OPEN', 'CLOSED')),
  result text,
  created_at timestamptz(3) not null default now(),
  closed_at timestamptz(3),
  check ((state = 'CLOSED') = (closed_at is not null and result is not null))
);
create unique index abuse_case_complaint on abuse_case (source, address, occurred_at);
create index abuse_case_account on abuse_case (account_id, id);
create index abuse_case_open on abuse_case (deadline) where state = 'OPEN';
create index abuse_case_closed on abuse_case (closed_at) where closed_at is not null;

-- Notes of operators. The page of an account also shows its latest payments.
create table account_note (
  id text primary key,
  account_id text not null,
  author text not null,
  body text not null,
  created_at timestamptz(3) not null default now()
);
create index account_note_account on account_note (account_id, id);
create index payment_account on payment (account_id, id);
