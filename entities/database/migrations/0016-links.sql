-- A link comes into the audit log only with an entry of its account, and with the next number of its chain. Otherwise the
-- role of the service could take the numbers that a chain needs.
create function admit_link() returns trigger language plpgsql as $$
    begin
      if not exists (select from audit_entry where id = new.entry_id and account_id = new.account_id) then
        raise exception 'audit_link takes links of entries of their account' using errcode = 'integrity_constraint_violation';
      end if;
      if new.number <> (select coalesce(max(number), 0)::numeric + 1 from audit_link where account_id = new.account_id) then
        raise exception 'audit_link takes the next number of a chain' using errcode = 'integrity_constraint_violation';
      end if;
      return new;
    end $$;
-- Temporary tables of the caller must not stand in for the tables.
do $$ begin
  execute format('alter function admit_link() set search_path = %I, pg_temp', current_schema());
end $$;
create trigger audit_link_admitted before insert on audit_link for each row execute function admit_link();
