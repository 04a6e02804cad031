-- The mark of the last whole proof of the records. A thief of the database cannot make one that counts: it needs SECRET_KEY.
create table proof_mark (
  id text primary key check (id = 'last'),
  text text not null,
  mac bytea not null
);
