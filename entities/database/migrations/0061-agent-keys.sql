-- Entries without fastupdate: a search would read the whole list of what is not in the index yet.
create index concurrently agent_keys on agent
  using gin (term_keys(agent_terms(status, slug, name, description, skill_terms, endpoints, verified))) with (fastupdate = off);
