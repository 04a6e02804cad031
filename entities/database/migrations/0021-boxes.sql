-- The disks of a host by names that do not change over boots. A device such as /dev/sda can be another disk after the next
-- boot, so the operator states the disks of earlier hosts anew. Until then, the service neither sells nor wipes them.
alter table host
  add disks text[] not null default '{}',
  add bmc_users text[],
  add boot_network_isolated boolean not null default false;
update host set disks = array[substr(disk, 17)] where disk ~ '^/dev/disk/by-id/[A-Za-z0-9][A-Za-z0-9#+.:=@_-]{2,127}$';
alter table host
  drop column disk,
  add constraint host_disks_check
    check (array_to_string(disks, ' ') ~ '^([A-Za-z0-9][A-Za-z0-9#+.:=@_-]{2,127}( |$))*$' and cardinality(disks) <= 64);

alter table deployment
  drop column disk,
  add restarts int not null default 0 check (restarts >= 0),
  add report text,
  add bmc_users text[];
