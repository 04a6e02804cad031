/** Places become rows that orders claim, instead of a count of which each order locked the row. */
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** No more rows than that are made of one tier at one bastion, whatever the operator has set. */
const PLACES_MAX = 100_000;

export class Places0000000000026 implements MigrationInterface {
  readonly name = 'Places0000000000026';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table place (
        region_code text not null,
        service_code text not null,
        number int not null,
        order_number text,
        primary key (region_code, service_code, number)
      );
      create index place_free on place (region_code, service_code, number) where order_number is null;
      create index place_held on place (order_number) where order_number is not null`);
    // A server with an address holds a place. One that is being resized holds a place of its next tier, too.
    await runner.query(`
      insert into place (region_code, service_code, number, order_number)
      select region, code, row_number() over (partition by region, code order by order_number), order_number
      from (
        select region, service_code as code, order_number from server where ipv4 is not null
        union all
        select region, change->>'serviceCode', order_number from server
        where ipv4 is not null and change->>'operation' = 'resize') held`);
    await runner.query('alter table stock drop column claimed');
    await runner.query(`
      insert into stock (region_code, service_code, total)
      select region_code, service_code, count(*) from place group by region_code, service_code
      on conflict (region_code, service_code) do update set total = greatest(stock.total, excluded.total)`);
    await runner.query('update stock set total = $1 where total > $1', [PLACES_MAX]);
    await runner.query(`
      insert into place (region_code, service_code, number)
      select region_code, service_code, number from stock cross join generate_series(1, total) number
      on conflict do nothing`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table stock add column claimed int not null default 0');
    await runner.query(`
      update stock set claimed = (
        select count(*) from place where place.region_code = stock.region_code
          and place.service_code = stock.service_code and order_number is not null)`);
    await runner.query(
      'alter table stock add constraint stock_claimed check (claimed between 0 and total); drop table place',
    );
  }
}
