-- The catalog and the places that orders claim, with a made-up catalog to begin with. The operator may change all of it.

create table catalog_item (
  code text primary key
    check (code ~ '^[a-z0-9][a-z0-9.-]{0,31}$' and code not in ('vps', 'dedicated', 'bastions', 'images')),
  kind text not null check (kind in ('vps', 'dedicated', 'bastion', 'image')),
  name text not null,
  position int not null,
  price_month_micros bigint,
  setup_fee_micros bigint,
  details jsonb not null,
  offered boolean not null default true
);

create table stock (
  region_code text not null,
  service_code text not null,
  total int not null,
  primary key (region_code, service_code)
);

create table place (
  region_code text not null,
  service_code text not null,
  number int not null,
  order_number text,
  primary key (region_code, service_code, number)
);
create index place_free on place (region_code, service_code, number) where order_number is null;
create index place_held on place (order_number) where order_number is not null;

insert into catalog_item (code, kind, name, position, price_month_micros, setup_fee_micros, details)
select code, 'vps', format('VPS %s vCPU, %s GB', vcpus, memory_gb), position, usd * 1000000, 0,
  jsonb_build_object('vcpus', vcpus, 'memoryMb', memory_gb * 1024, 'diskGb', disk_gb, 'diskType', 'NVMe',
    'trafficTb', traffic_tb, 'portMbps', 1000, 'virtualization', 'container')
from (values
  (0, 'vps-1', 6, 1, 2, 25, 2),
  (1, 'vps-2', 12, 2, 4, 60, 4),
  (2, 'vps-3', 24, 4, 8, 120, 6),
  (3, 'vps-4', 48, 8, 16, 240, 8),
  (4, 'vps-5', 96, 16, 32, 480, 10)
) as tier (position, code, usd, vcpus, memory_gb, disk_gb, traffic_tb);

insert into catalog_item (code, kind, name, position, price_month_micros, setup_fee_micros, details)
select code, 'dedicated', format('Dedicated %s cores, %s GB', cores, memory_gb), position, usd * 1000000, setup_usd * 1000000,
  jsonb_build_object('cpuModel', cpu_model, 'cores', cores, 'threads', cores * 2, 'memoryMb', memory_gb * 1024,
    'disks', disks::jsonb, 'trafficTb', null, 'portMbps', port_mbps, 'deliveryHours', 4)
from (values
  (5, 'ded-1', 99, 0, 'AMD Ryzen 7 7700', 8, 64, 1000,
    '[{"count": 2, "sizeGb": 960, "type": "NVMe"}]'),
  (6, 'ded-2', 179, 49, 'AMD EPYC 4564P', 16, 128, 1000,
    '[{"count": 2, "sizeGb": 1920, "type": "NVMe"}]'),
  (7, 'ded-3', 349, 99, 'AMD EPYC 9354P', 32, 256, 10000,
    '[{"count": 2, "sizeGb": 960, "type": "NVMe"}, {"count": 4, "sizeGb": 7680, "type": "NVMe"}]')
) as tier (position, code, usd, setup_usd, cpu_model, cores, memory_gb, port_mbps, disks);

insert into catalog_item (code, kind, name, position, details)
select code, 'bastion', name, position,
  jsonb_build_object('city', city, 'country', country, 'latitude', latitude, 'longitude', longitude,
    'testIpv4', null, 'testIpv6', null, 'lookingGlassUrl', null, 'status', 'operational')
from (values
  (8, 'ams', 'Amsterdam', 'Amsterdam', 'NL', 52.3, 4.94),
  (9, 'zrh', 'Zürich', 'Zürich', 'CH', 47.39, 8.52),
  (10, 'kef', 'Keflavík', 'Reykjanesbær', 'IS', 64, -22.56),
  (11, 'buh', 'Bucharest', 'Bucharest', 'RO', 44.44, 26.1)
) as region (position, code, name, city, country, latitude, longitude);

insert into catalog_item (code, kind, name, position, details)
select family || '-' || version, 'image', name, position,
  jsonb_build_object('family', family, 'version', version, 'architecture', 'x86_64', 'minDiskGb', disk_gb,
    'minMemoryMb', memory_mb, 'cloudInit', true, 'defaultUser', 'root', 'deprecatedAt', null)
from (values
  (12, 'debian', '13', 'Debian 13', 4, 512),
  (13, 'debian', '12', 'Debian 12', 4, 512),
  (14, 'ubuntu', '24.04', 'Ubuntu 24.04 LTS', 5, 1024),
  (15, 'alma', '9', 'AlmaLinux 9', 8, 1024),
  (16, 'rocky', '9', 'Rocky Linux 9', 8, 1024),
  (17, 'alpine', '3.22', 'Alpine 3.22', 1, 256)
) as image (position, family, version, name, disk_gb, memory_mb);

insert into stock (region_code, service_code, total)
select region.code, tier.code, case tier.kind when 'vps' then 35 else 4 end
from catalog_item region cross join catalog_item tier
where region.kind = 'bastion' and tier.kind in ('vps', 'dedicated')
  and not (tier.code = 'ded-3' and region.code in ('kef', 'buh'));

insert into place (region_code, service_code, number)
select region_code, service_code, number from stock cross join generate_series(1, total) number;
