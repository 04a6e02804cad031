-- The service may not delete events. This function deletes for it those of customers that are older than 400 days. It keeps the
-- operator's, and the newest of each subject: watchers show it. It looks at the next events of a range, and returns the last one.
create function delete_old_events(after text, before text, most int, out last text, out deleted int)
  language plpgsql security definer set search_path from current as $$
    begin
      with looked as (
          select id, account_id, subject, created_at from event where id > after and id < before order by id limit most),
        gone as (
          delete from event using looked
            where event.id = looked.id and looked.account_id <> 'operator' and looked.created_at < now() - interval '400 days'
              and exists (select from event later where later.account_id = looked.account_id and later.subject = looked.subject and later.id > looked.id)
            returning 1)
      select max(looked.id), (select count(*) from gone) into last, deleted from looked;
    end $$;
revoke execute on function delete_old_events(text, text, int) from public;
