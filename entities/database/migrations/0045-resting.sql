-- The account whose machine had a resting address last. One account keeps few addresses from others.
alter table address add column rests_for text;
create index address_resting on address (rests_for, free_at) where held_by is null and rests_for is not null;
