-- The operator reads the messages that customers wrote, also among many that went to all accounts.
create index message_sender on message (sender, id);
