/** Payments in coins, the blocks of the chains that are followed, rates, and where deposit addresses come from. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Payments0000000000021 implements MigrationInterface {
  readonly name = 'Payments0000000000021';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table payment (
        id text primary key,
        network text not null,
        tx_id text not null,
        position int not null,
        coin text not null,
        address text not null,
        account_id text not null,
        order_number text not null,
        units text not null check (units ~ '^[1-9][0-9]{0,77}$'),
        status text not null check (status in ('SEEN', 'MINED', 'CREDITED', 'UNMATCHED', 'ORPHANED', 'REVERSED')),
        height int,
        block_hash text,
        confirmations int not null default 0,
        seen_at timestamptz(3) not null,
        quoted_units text check (quoted_units ~ '^[0-9]{1,78}$'),
        rate_micros bigint,
        credited_micros bigint not null default 0 check (credited_micros >= 0),
        credited_at timestamptz(3),
        reversed_micros bigint not null default 0 check (reversed_micros between 0 and credited_micros),
        reversals int not null default 0,
        created_at timestamptz(3) not null default now()
      );
      create unique index payment_key on payment (network, tx_id, position);
      create index payment_top_up on payment (order_number, id);
      create index payment_open on payment (network, order_number) where status in ('SEEN', 'MINED');
      create index payment_block on payment (network, height);
      create index payment_gone on payment (network)
        where status = 'CREDITED' and height is not null and block_hash is null;
      create index payment_suspense on payment (id) where status in ('UNMATCHED', 'REVERSED');

      create table chain_block (
        network text not null,
        height int not null,
        hash text not null,
        primary key (network, height)
      );
      create table deposit (source text primary key, next int not null);
      create table coin_rate (
        coin text not null,
        source text not null,
        rate_micros bigint not null check (rate_micros > 0),
        observed_at timestamptz(3) not null,
        primary key (coin, source)
      );
      alter table top_up add column reference text;
      create index top_up_address on top_up (network, wallet_address, created_at)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index top_up_address;
      alter table top_up drop column reference;
      drop table payment, chain_block, deposit, coin_rate`);
  }
}
