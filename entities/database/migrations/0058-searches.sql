-- As before. But PostgreSQL reads the suspended accounts once, and does not look up the account of each entry that fits.
create or replace function search_agents(words text, terms text[], before text, most int) returns setof text stable language sql
  set enable_seqscan = off set enable_indexscan = off set enable_nestloop = off set jit = off
begin atomic
  select id from agent
  where agent_terms(status, slug, name, description, skill_terms, endpoints, verified)
      @> (case when words is null then terms else (search_words(words))[:5] || terms end)
    and (before is null or id < before)
    and not exists (select from account where account.id = agent.account_id and suspended_at is not null)
  order by id desc limit most;
end;
