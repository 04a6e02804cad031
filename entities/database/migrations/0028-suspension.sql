-- The directory lacks the entries of suspended accounts, until the operator resumes them.

-- As before, and the account of an entry is not suspended. The inner query stays apart because of its offset. So PostgreSQL
-- looks up the accounts of one page, and not those of all entries that fit.
create or replace function search_agents(words text, terms text[], before text, most int) returns setof text stable language sql
  set enable_seqscan = off set enable_indexscan = off set jit = off
begin atomic
  select id from (
    select id, account_id from agent
    where agent_terms(status, slug, name, description, skill_terms, endpoints, verified)
        @> (case when words is null then terms else (search_words(words))[:5] || terms end)
      and (before is null or id < before)
    order by id desc offset 0) as fitting
  where (select suspended_at is null from account where account.id = fitting.account_id)
  order by id desc limit most;
end;
