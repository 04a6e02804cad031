/** A catalog to begin with, made up and plausible. What an operator changes later stays changed. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Catalog0000000000002 implements MigrationInterface {
  readonly name = 'Catalog0000000000002';

  async up(runner: QueryRunner): Promise<void> {
    const items = [...VPS, ...DEDICATED, ...BASTIONS, ...IMAGES];
    await runner.query(
      `insert into catalog_item (code, kind, name, position, price_month_micros, setup_fee_micros, details)
        select code, kind, name, position, price * 1000000, setup * 1000000, details
        from jsonb_to_recordset($1) as given(code text, kind text, name text, position int, price bigint, setup bigint, details jsonb)`,
      [JSON.stringify(items.map((item, position) => ({ ...item, position })))],
    );
    await runner.query(
      `insert into stock (region_code, service_code, total)
        select bastion.code, tier.code, case tier.kind when 'vps' then 35 else 4 end
        from catalog_item bastion cross join catalog_item tier
        where bastion.kind = 'bastion' and tier.kind in ('vps', 'dedicated') and not (tier.code = 'ded-3' and bastion.code in ('kef', 'buh'))`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('delete from stock; delete from catalog_item');
  }
}

const vps = (code: string, vcpus: number, memoryGb: number, diskGb: number, trafficTb: number, price: number) => ({
  code,
  kind: 'vps',
  name: `VPS ${vcpus} vCPU, ${memoryGb} GB`,
  price,
  setup: 0,
  details: {
    vcpus,
    memoryMb: memoryGb * 1024,
    diskGb,
    diskType: 'NVMe',
    trafficTb,
    portMbps: 1000,
    virtualization: 'container',
  },
});
const VPS = [
  vps('vps-1', 1, 2, 25, 2, 6),
  vps('vps-2', 2, 4, 60, 4, 12),
  vps('vps-3', 4, 8, 120, 6, 24),
  vps('vps-4', 8, 16, 240, 8, 48),
  vps('vps-5', 16, 32, 480, 10, 96),
];

const dedicated = (
  [code, price, setup]: [string, number, number],
  [cpuModel, cores, memoryGb]: [string, number, number],
  disks: { count: number; sizeGb: number; type: string }[],
  portMbps: number,
) => ({
  code,
  kind: 'dedicated',
  name: `Dedicated ${cores} cores, ${memoryGb} GB`,
  price,
  setup,
  details: {
    cpuModel,
    cores,
    threads: cores * 2,
    memoryMb: memoryGb * 1024,
    disks,
    trafficTb: null,
    portMbps,
    deliveryHours: 4,
  },
});
const DEDICATED = [
  dedicated(['ded-1', 99, 0], ['AMD Ryzen 7 7700', 8, 64], [{ count: 2, sizeGb: 960, type: 'NVMe' }], 1000),
  dedicated(['ded-2', 179, 49], ['AMD EPYC 4564P', 16, 128], [{ count: 2, sizeGb: 1920, type: 'NVMe' }], 1000),
  dedicated(
    ['ded-3', 349, 99],
    ['AMD EPYC 9354P', 32, 256],
    [
      { count: 2, sizeGb: 960, type: 'NVMe' },
      { count: 4, sizeGb: 7680, type: 'NVMe' },
    ],
    10_000,
  ),
];

const bastion = (
  code: string,
  name: string,
  city: string,
  country: string,
  [latitude, longitude]: [number, number],
) => ({
  code,
  kind: 'bastion',
  name,
  details: {
    city,
    country,
    latitude,
    longitude,
    testIpv4: null,
    testIpv6: null,
    lookingGlassUrl: null,
    status: 'operational',
  },
});
const BASTIONS = [
  bastion('ams', 'Amsterdam', 'Amsterdam', 'NL', [52.3, 4.94]),
  bastion('zrh', 'Zürich', 'Zürich', 'CH', [47.39, 8.52]),
  bastion('kef', 'Keflavík', 'Reykjanesbær', 'IS', [64, -22.56]),
  bastion('buh', 'Bucharest', 'Bucharest', 'RO', [44.44, 26.1]),
];

const image = (
  code: string,
  name: string,
  family: string,
  version: string,
  diskGb: number,
  memoryMb: number,
  defaultUser = 'root',
) => ({
  code,
  kind: 'image',
  name,
  details: {
    family,
    version,
    architecture: 'x86_64',
    minDiskGb: diskGb,
    minMemoryMb: memoryMb,
    cloudInit: true,
    defaultUser,
    deprecatedAt: null,
  },
});
const IMAGES = [
  image('debian-13', 'Debian 13', 'debian', '13', 4, 512),
  image('debian-12', 'Debian 12', 'debian', '12', 4, 512),
  image('ubuntu-24.04', 'Ubuntu 24.04 LTS', 'ubuntu', '24.04', 5, 1024),
  image('alma-9', 'AlmaLinux 9', 'alma', '9', 8, 1024),
  image('rocky-9', 'Rocky Linux 9', 'rocky', '9', 8, 1024),
  image('alpine-3.22', 'Alpine 3.22', 'alpine', '3.22', 1, 256),
];
