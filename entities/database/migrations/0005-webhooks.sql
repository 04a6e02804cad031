-- Webhooks and their deliveries.

create table webhook (
  id text primary key,
  account_id text not null,
  url text not null,
  event_filter text[] not null default '{}',
  description text,
  secret bytea not null,
  status text not null default 'ENABLED' check (status in ('ENABLED', 'DISABLED')),
  disabled_reason text,
  last_success_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index webhook_account on webhook (account_id, id);

create table webhook_delivery (
  id text primary key,
  account_id text not null,
  webhook_id text not null,
  event_id text not null,
  event_type text not null,
  snapshot jsonb,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'DELIVERING', 'RETRYING', 'SUCCEEDED', 'FAILED')),
  attempts int not null default 0,
  response_status int,
  duration_ms int,
  error text,
  first_attempt_at timestamptz(3),
  next_attempt_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index webhook_delivery_account on webhook_delivery (account_id, id);
create index webhook_delivery_webhook on webhook_delivery (webhook_id, id);
create index webhook_delivery_due on webhook_delivery (webhook_id, next_attempt_at) where next_attempt_at is not null;
create index webhook_delivery_pending on webhook_delivery (created_at, webhook_id) where status = 'PENDING';
