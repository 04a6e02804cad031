-- No request reads more rows as the tables grow: each filter of a list has an index, and sums are kept.

create index top_up_account_status on top_up (account_id, status, id);
create index api_key_account_status on api_key (account_id, status, id);
create index session_open on session (account_id, id) where revoked_at is null;

-- The words of a text, in lower case. A search compares 20 characters of a word. A text without words has the word '',
-- which no entry has.
create function search_words(given text) returns text[] immutable language sql begin atomic
  select coalesce(array_agg(left(word, 20) order by place) filter (where word <> ''), array[''])
  from regexp_split_to_table(lower(given),
      '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u00d7\u00f7\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+')
    with ordinality as words (word, place);
end;

-- All that a search finds an entry by: each beginning of each word, its skills, its protocols and its verification. A
-- search for the beginning of a word then needs one key of the index, and an entry has at most as many as characters. Only
-- listed entries have terms.
create function agent_terms(status text, slug text, name text, description text, skill_terms text[], endpoints jsonb,
    verified boolean) returns text[] immutable language sql begin atomic
  select array_agg(distinct term) from (
    select left(word, length) from unnest(search_words(concat_ws(' ', slug, name, description))) as word
      cross join generate_series(1, length(word)) as length
    union all select 'skill:' || skill from unnest(skill_terms) as skill
    union all select 'protocol:' || (endpoint->>'protocol') from jsonb_array_elements(endpoints) as endpoint
    union all select 'verified:' || verified) as terms (term)
  where status = 'LISTED';
end;

-- Entries without fastupdate: a search would read the whole list of what is not in the index yet.
create index agent_terms on agent
  using gin (agent_terms(status, slug, name, description, skill_terms, endpoints, verified)) with (fastupdate = off);

-- The newest entries that have all words of a text and all the other terms. Other plans than the one by the index would
-- compute the terms of each entry, and the planner prefers them for terms that many entries have.
create function search_agents(words text, terms text[], before text, most int) returns setof text stable language sql
  set enable_seqscan = off set enable_indexscan = off set jit = off
begin atomic
  select id from agent
  where agent_terms(status, slug, name, description, skill_terms, endpoints, verified)
      @> (case when words is null then terms else (search_words(words))[:5] || terms end)
    and (before is null or id < before)
  order by id desc limit most;
end;

-- The sums of usage, so that the sum of a range needs a row for each day. Only transfers from and to the available balance
-- count; the trigger adds them in their transaction.
create table usage_day (
  account_id text not null,
  day date not null,
  total_micros bigint not null,
  primary key (account_id, day)
);
insert into usage_day (account_id, day, total_micros)
  select account_id, (created_at at time zone 'UTC')::date,
      sum(case when credit = 'available:' || account_id then amount_micros else -amount_micros end)
    from transfer where 'available:' || account_id in (debit, credit) group by 1, 2;

create function add_usage() returns trigger language plpgsql as $$
    begin
      insert into usage_day as known (account_id, day, total_micros)
        select account_id, (created_at at time zone 'UTC')::date,
            sum(case when credit = 'available:' || account_id then amount_micros else -amount_micros end)
          from written where 'available:' || account_id in (debit, credit) group by 1, 2 order by 1, 2
        on conflict (account_id, day) do update set total_micros = known.total_micros + excluded.total_micros;
      return null;
    end $$;
create trigger transfer_usage after insert on transfer
  referencing new table as written for each statement execute function add_usage();

-- PostgreSQL copies values of columns into its statistics. Sealed values must not stay there under an earlier key. The type does
-- not change: naming it again removes the statistics that exist.
alter table idempotency_key
  alter sealed_answer type bytea, alter sealed_answer set statistics 0;
alter table x402_payment
  alter sealed_payment type bytea, alter sealed_payment set statistics 0,
  alter sealed_request type bytea, alter sealed_request set statistics 0,
  alter sealed_answer type bytea, alter sealed_answer set statistics 0;
alter table webhook
  alter secret type bytea, alter secret set statistics 0,
  alter previous_secret type bytea, alter previous_secret set statistics 0;
alter table deployment
  alter seed type bytea, alter seed set statistics 0;
alter table host
  alter bmc_password type bytea, alter bmc_password set statistics 0;
alter table server
  alter root_password type bytea, alter root_password set statistics 0,
  alter user_data type bytea, alter user_data set statistics 0;
alter table manual_job
  alter spec type bytea, alter spec set statistics 0;
alter table totp
  alter seed type bytea, alter seed set statistics 0,
  alter recovery_codes type bytea, alter recovery_codes set statistics 0;

-- The spending of each credential in each calendar month (UTC), so that the check of a limit needs one row. A transfer counts
-- for the credential that spends and for its creator. A release takes back its hold in the month of the hold.
create table spending_month (
  credential_id text not null,
  month date not null,
  micros bigint not null,
  primary key (credential_id, month)
);
insert into spending_month (credential_id, month, micros)
  select spender.id, date_trunc('month', spent.created_at at time zone 'UTC'), sum(spent.amount_micros - coalesce(released.amount_micros, 0))
    from transfer spent left join transfer released
        on spent.kind = 'hold' and released.external_key = 'release:' || split_part(spent.external_key, ':', 2)
      cross join unnest(array[spent.credential_id, spent.limited_by]) as spender (id)
    where spent.debit = 'available:' || spent.account_id and spender.id is not null group by 1, 2;

-- Without scans of whole tables: a connection keeps the plan that it made while the ledger was small.
create function add_spending() returns trigger language plpgsql set enable_seqscan = off as $$
    declare
      spent transfer := new;
      change bigint := new.amount_micros;
    begin
      if new.kind = 'release' then
        select * into spent from transfer where external_key = 'hold:' || split_part(new.external_key, ':', 2);
        change := -change;
      end if;
      insert into spending_month as known (credential_id, month, micros)
        select id, date_trunc('month', spent.created_at at time zone 'UTC'), change
          from unnest(array[spent.credential_id, spent.limited_by]) as spender (id) where id is not null
        on conflict (credential_id, month) do update set micros = known.micros + excluded.micros;
      return null;
    end $$;
create trigger transfer_spending after insert on transfer for each row
  when (new.kind = 'release'
    or (new.debit = 'available:' || new.account_id and (new.credential_id is not null or new.limited_by is not null)))
  execute function add_spending();
drop index transfer_credential, transfer_limited_by;

-- The operator may offer fewer machines than customers have. The release of such a place then removes it.
alter table place add withdrawn boolean not null default false,
  add constraint place_withdrawn_check check (order_number is not null or not withdrawn);
