-- With the usual 4 MB, a search of 300,000 entries that all fit took 25 seconds: PostgreSQL remembered the pages of the entries
-- instead of the entries, and computed the terms of each again.
alter function search_agents(text, text[], text, int) set work_mem = '64MB';
