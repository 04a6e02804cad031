-- Why an engine reports a host offline, and since when.
alter table host add column trouble text, add column trouble_at timestamptz(3);
