-- When the customer last had a delivery repeated. It limits repetitions.
alter table webhook_delivery add column redelivered_at timestamptz;
create index webhook_delivery_redelivered on webhook_delivery (webhook_id, redelivered_at) where redelivered_at is not null;
