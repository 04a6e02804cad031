-- An SSH key ends with its creator, if that is an OAuth client or a credential with limits.
alter table ssh_key
  add column expires_at timestamptz(3),
  add column limited_by text;
