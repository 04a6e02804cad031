/** x402 payments. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class X4020000000000011 implements MigrationInterface {
  readonly name = 'X4020000000000011';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table x402_payment (
        id text primary key,
        account_id text not null,
        network text not null,
        payer text not null,
        nonce text not null,
        asset text not null,
        pay_to text not null,
        amount_micros bigint not null check (amount_micros > 0),
        valid_before timestamptz(3) not null,
        signature_digest bytea not null,
        request_mac bytea not null,
        status text not null check (status in ('SETTLING', 'SETTLED', 'FAILED')),
        tx_id text,
        order_number text,
        credential_id text,
        sealed_answer bytea,
        leased_by text,
        lease_until timestamptz(3) not null,
        created_at timestamptz(3) not null default now()
      );
      create unique index x402_payment_nonce on x402_payment (network, payer, nonce);
      create index x402_payment_answered on x402_payment (created_at) where sealed_answer is not null`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table x402_payment');
  }
}
