-- New accounts of the last minute. Above a rate, a registration needs a proof of work.
create index account_created on account (created_at);

-- Solved challenges of registrations, so that each counts once. A crash empties the table, and the challenges end in minutes.
create unlogged table solved_challenge (
  nonce text primary key,
  expires_at timestamptz(3) not null
);
