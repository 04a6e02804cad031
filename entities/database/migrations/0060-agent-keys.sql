-- The index of the terms kept each term for ever, and an entry may have a thousand new ones with each change. These keys are at
-- most four million numbers, so their index has a bound. Different terms may have the same key.
create function term_keys(terms text[]) returns int[] immutable language sql begin atomic
  select array_agg(distinct ('x' || left(md5(term), 6))::bit(24)::int & 4194303) from unnest(terms) as term;
end;
