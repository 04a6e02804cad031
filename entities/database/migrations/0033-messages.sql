-- Messages between the operator and customers. The service sends no mail.
create table message (
  id text primary key,
  account_id text not null,
  sender text not null check (sender in ('OPERATOR', 'CUSTOMER')),
  title text not null,
  body text not null,
  related_type text,
  related_id text,
  created_at timestamptz(3) not null default now(),
  read_at timestamptz(3),
  check ((related_type is null) = (related_id is null))
);
create index message_account on message (account_id, id);
create index message_unread on message (sender, id) where read_at is null;

-- The operator reads the events of one type.
create index event_operator on event (type, id) where account_id = 'operator';
