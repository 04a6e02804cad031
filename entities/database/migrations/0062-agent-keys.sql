-- As before, but by keys. With the usual 4 MB of memory, PostgreSQL would remember pages of the table instead of entries, and
-- compute the keys of each again. The id is an expression, because PostgreSQL would else read all entries before that one.
create or replace function search_agents(words text, terms text[], before text, most int) returns setof text stable language sql
  set enable_seqscan = off set enable_indexscan = off set enable_nestloop = off set jit = off set work_mem = '64MB'
begin atomic
  select id from agent
  where term_keys(agent_terms(status, slug, name, description, skill_terms, endpoints, verified))
      @> term_keys(case when words is null then terms else (search_words(words))[:5] || terms end)
    and (before is null or id || '' < before)
    and not exists (select from account where account.id = agent.account_id and suspended_at is not null)
  order by id desc limit most;
end;
drop index agent_terms;
