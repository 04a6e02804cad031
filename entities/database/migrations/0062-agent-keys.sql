-- As before, but the index finds the entries by keys. PostgreSQL then compares the terms of the newest until the page is full. With
-- the usual 4 MB of memory, it would remember pages of the table instead of entries, and compute the keys of each again.
create or replace function search_agents(words text, terms text[], before text, most int) returns setof text stable language sql
  set enable_seqscan = off set enable_indexscan = off set enable_nestloop = off set jit = off set work_mem = '64MB'
begin atomic
  with wanted as materialized (
    select case when words is null then terms else (search_words(words))[:5] || terms end as terms)
  select id from (
    select id from agent
    where term_keys(agent_terms(status, slug, name, description, skill_terms, endpoints, verified))
        @> term_keys(case when words is null then terms else (search_words(words))[:5] || terms end)
      -- An expression, because PostgreSQL would read all entries before that one, and compute their keys.
      and (before is null or id || '' < before)
      and not exists (select from account where account.id = agent.account_id and suspended_at is not null)
    order by id desc offset 0) as found
  where (
    select agent_terms(status, slug, name, description, skill_terms, endpoints, verified) @> (select terms from wanted)
    from agent where agent.id = found.id)
  order by id desc limit most;
end;
drop index agent_terms;
