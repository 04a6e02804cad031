-- A receipt of a top-up read all later transfers of its account.
create index concurrently transfer_top_up on transfer (order_number) where order_number like 'TOP-%';
