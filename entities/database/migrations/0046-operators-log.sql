-- Operators read their acts in all logs, by the actor and by the action.
create index audit_entry_operators on audit_entry (action, id) where account_id = 'operator' or actor_type = 'operator';
create index audit_entry_operator on audit_entry (actor_id, action, id, account_id) where actor_type = 'operator';
