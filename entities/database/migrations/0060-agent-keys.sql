-- The index of the terms kept each term for ever, and an entry may have a thousand new ones with each change. A key takes a third of
-- the room. It has 60 bits, so nobody finds another term with the key of a given one.
create function term_keys(terms text[]) returns bigint[] immutable language sql begin atomic
  select array_agg(distinct ('x' || left(md5(term), 15))::bit(60)::bigint) from unnest(terms) as term;
end;
