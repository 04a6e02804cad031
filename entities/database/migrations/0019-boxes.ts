/** Boxes are hosts: what their driver has to know. And which engine makes machines of each kind now. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Boxes0000000000019 implements MigrationInterface {
  readonly name = 'Boxes0000000000019';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table host
        add bmc_certificate text,
        add disk text constraint host_disk_check check (disk ~ '^/dev/[A-Za-z0-9/_.:-]{1,200}$'),
        add firmware text constraint host_firmware_check check (firmware in ('BIOS', 'UEFI'));
      create unique index host_mac on host (mac);
      create unique index host_bmc_address on host (bmc_address);

      alter table deployment drop constraint deployment_state_check, add note text;
      alter table deployment add constraint deployment_state_check
        check (state in ('WAITING', 'INSTALLING', 'INSTALLED', 'BOOTED', 'WIPING', 'WIPED', 'RETIRED'));

      create table engine (
        kind text primary key check (kind in ('VPS', 'DEDICATED')),
        driver text not null,
        needs_hosts boolean not null
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table engine;
      alter table deployment drop constraint deployment_state_check, drop note;
      alter table deployment add constraint deployment_state_check
        check (state in ('WAITING', 'INSTALLING', 'INSTALLED', 'BOOTED', 'WIPING', 'WIPED'));
      drop index host_bmc_address; drop index host_mac;
      alter table host drop firmware, drop disk, drop bmc_certificate`);
  }
}
