-- The audit log becomes append-only, and its entries form hash chains, whose heads are signed.

-- How often it happened since the entry before. Only security events count more than one.
alter table audit_entry add column count int not null default 1 check (count > 0);

-- Entries that are not in their chain yet. A worker empties it every few seconds.
create table audit_unlinked (
  entry_id text primary key
);
insert into audit_unlinked (entry_id) select id from audit_entry;

create function note_unlinked() returns trigger language plpgsql as $$
    begin insert into audit_unlinked (entry_id) select id from written; return null; end $$;
create trigger audit_entry_unlinked after insert on audit_entry
  referencing new table as written for each statement execute function note_unlinked();

-- One hash chain for each account. The oldest kept link has no entry any more: it is the anchor of its chain.
create table audit_link (
  account_id text not null,
  number bigint not null check (number > 0),
  entry_id text not null,
  hash bytea not null check (length(hash) = 32),
  linked_at timestamptz(3) not null default clock_timestamp(),
  primary key (account_id, number)
);
create unique index audit_link_entry on audit_link (entry_id);
create index audit_link_time on audit_link (linked_at);

-- The signed heads of the chains that grew since the signature before.
create table audit_signature (
  number bigint primary key,
  signed_text text not null,
  public_key bytea not null,
  signature bytea not null,
  signed_at timestamptz(3) not null default clock_timestamp()
);

create function refuse_young_delete() returns trigger language plpgsql as $$
    begin
      if old.created_at > now() - interval '90 days' then
        raise exception '% keeps its rows for 90 days', tg_table_name using errcode = 'integrity_constraint_violation';
      end if;
      return old;
    end $$;
create trigger audit_entry_append_only before update on audit_entry for each row execute function refuse_change();
create trigger audit_entry_kept before delete on audit_entry for each row execute function refuse_young_delete();
create trigger audit_entry_no_truncate before truncate on audit_entry for each statement execute function refuse_change();

create function refuse_link_delete() returns trigger language plpgsql as $$
    begin
      if exists (select from audit_entry where id = old.entry_id) then
        raise exception 'audit_link keeps the links of entries' using errcode = 'integrity_constraint_violation';
      end if;
      return old;
    end $$;
create trigger audit_link_append_only before update on audit_link for each row execute function refuse_change();
create trigger audit_link_kept before delete on audit_link for each row execute function refuse_link_delete();
create trigger audit_link_no_truncate before truncate on audit_link for each statement execute function refuse_change();

create function refuse_young_signature_delete() returns trigger language plpgsql as $$
    begin
      if old.signed_at > now() - interval '97 days' then
        raise exception 'audit_signature keeps its rows for 97 days' using errcode = 'integrity_constraint_violation';
      end if;
      return old;
    end $$;
create trigger audit_signature_append_only before update on audit_signature for each row execute function refuse_change();
create trigger audit_signature_kept before delete on audit_signature
  for each row execute function refuse_young_signature_delete();
create trigger audit_signature_no_truncate before truncate on audit_signature
  for each statement execute function refuse_change();

create trigger canary_no_truncate before truncate on canary for each statement execute function refuse_change();

-- The service may not delete from these tables. This function deletes for it what is old enough: of each chain a part at
-- its beginning. It takes the accounts of the oldest entries, and at most so many entries of each.
create function delete_old_audit(most int) returns int language plpgsql security definer set search_path from current as $$
    declare
      gone text[];
    begin
      delete from audit_signature where signed_at < now() - interval '97 days';
      with oldest as (
          select account_id from audit_entry where created_at < now() - interval '90 days' order by id limit most),
        bounds as (
          select account_id, (
            select number from audit_link join audit_entry on id = entry_id
              where audit_link.account_id = accounts.account_id and created_at >= now() - interval '90 days'
              order by number limit 1) as below
          from (select distinct account_id from oldest) as accounts)
      select array_agg(old.entry_id) into gone from bounds cross join lateral (
        select entry_id from audit_link join audit_entry on id = entry_id
          where audit_link.account_id = bounds.account_id and (below is null or number < below)
          order by number limit most) as old;
      if gone is null then return 0; end if;
      delete from audit_entry where id = any(gone);
      delete from audit_link using (
          select account_id, max(number) as last from audit_link where entry_id = any(gone) group by account_id) as anchor
        where audit_link.account_id = anchor.account_id and audit_link.number < anchor.last;
      return cardinality(gone);
    end $$;
revoke execute on function delete_old_audit(int) from public;
