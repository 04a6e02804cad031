-- A search looks at the 10,000 newest entries that fit. As before, their accounts are not suspended. Without the limit,
-- PostgreSQL sorted all entries that fit, and looked up the account of each entry of a suspended one.
create or replace function search_agents(words text, terms text[], before text, most int) returns setof text stable language sql
  set enable_seqscan = off set enable_indexscan = off set jit = off
begin atomic
  select id from (
    select id, account_id from agent
    where agent_terms(status, slug, name, description, skill_terms, endpoints, verified)
        @> (case when words is null then terms else (search_words(words))[:5] || terms end)
      and (before is null or id < before)
    order by id desc limit 10000) as fitting
  where (select suspended_at is null from account where account.id = fitting.account_id)
  order by id desc limit most;
end;
