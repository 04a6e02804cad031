-- The images that the service brings to engines. A task of the same name carries each out.
create table engine_image (
  name text primary key,
  engine text not null,
  code text not null,
  virtual_machine boolean not null,
  alias text not null,
  url text,
  sha256 text check (sha256 ~ '^[0-9a-f]{64}$'),
  server text,
  server_alias text,
  state text not null default 'IMPORTING' check (state in ('IMPORTING', 'READY', 'FAILED', 'WITHDRAWING')),
  fingerprint text,
  trouble text,
  trouble_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint engine_image_name_check check (name = engine || '/' || alias),
  constraint engine_image_source_check check (
    (url is not null and sha256 is not null and server is null and server_alias is null)
    or (url is null and server is not null and server_alias is not null)),
  constraint engine_image_ready_check check (state <> 'READY' or fingerprint is not null),
  constraint engine_image_trouble_check check ((trouble is null) = (trouble_at is null))
);
