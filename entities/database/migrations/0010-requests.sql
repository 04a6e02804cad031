-- What the service remembers of requests: answers for an Idempotency-Key, and the counts of rate limits.

create table idempotency_key (
  scope text not null,
  key_digest bytea not null,
  input_mac bytea not null,
  sealed_answer bytea,
  expires_at timestamptz(3) not null,
  primary key (scope, key_digest)
);
create index idempotency_key_expires on idempotency_key (expires_at);

create unlogged table rate (
  key text primary key,
  at double precision not null,
  minute bigint not null,
  in_minute int not null,
  before_minute int not null,
  hour bigint not null,
  in_hour int not null,
  before_hour int not null,
  allowed boolean not null
) with (fillfactor = 50);
