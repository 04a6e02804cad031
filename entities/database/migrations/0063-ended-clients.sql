-- OAuth clients that were deleted. Uses of them stand in the log of their owner, as those of ended API keys do.
create table ended_client (
  id text primary key,
  account_id text not null,
  ended_at timestamptz(3) not null default now()
);
