-- The traffic of servers, and what their machines use.

-- The last counters of a machine, their sums since the first reading, and the month (UTC) with its sent bytes.
create table meter (
  order_number text primary key,
  epoch text not null,
  read_at timestamptz(3) not null,
  sent_bytes bigint,
  received_bytes bigint,
  sent_packets bigint,
  cpu_ns bigint,
  total_sent_bytes bigint not null default 0,
  total_received_bytes bigint not null default 0,
  total_cpu_ns bigint not null default 0,
  packets_per_second int not null default 0,
  port_mbps int,
  month text not null check (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
  used_bytes bigint not null default 0 check (used_bytes >= 0),
  warned_percent int not null default 0 check (warned_percent in (0, 80, 100)),
  charged_tb int not null default 0 check (charged_tb >= 0)
);

-- The sums at the beginning of minutes and hours. A step is in seconds.
create table meter_sample (
  order_number text not null,
  step int not null check (step in (60, 3600)),
  at timestamptz(3) not null,
  sent_bytes bigint not null,
  received_bytes bigint not null,
  cpu_ns bigint,
  memory_bytes bigint,
  disk_bytes bigint,
  primary key (order_number, step, at)
);
create index meter_sample_age on meter_sample (step, at);

alter table transfer
  drop constraint transfer_kind_check,
  add constraint transfer_kind_check
    check (kind in ('topup', 'bonus', 'hold', 'capture', 'release', 'renewal', 'traffic', 'refund', 'adjustment'));

alter table finding
  drop constraint finding_kind_check,
  add constraint finding_kind_check
    check (kind in ('ORPHAN', 'LOST', 'POWER', 'SIZE', 'IMAGE', 'INCOMPLETE', 'STUCK', 'TRAFFIC'));
