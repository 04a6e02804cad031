/** Orders while answers of the database get lost. */
import { describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { startFreehold } from '../setup/freehold.ts';
import { type Fault, startFaultProxy } from '../setup/programs/fault-proxy.ts';
import { restClient } from '../setup/spawn.ts';

const ORDERS = 200;
const CLIENTS = 12;
const PRICE_USD = 6;

let faults: () => Fault = () => 'none';
const proxy = await startFaultProxy(await newDatabaseUrl(), () => faults());
atEnd(() => proxy.close());
const freehold = await startFreehold({ DATABASE_URL: proxy.url, ROLES: 'api', LIMIT_SERVERS: '100000' });
const { db, publicUrl, newAccount, operator } = freehold;

describe('When one in five COMMIT answers is lost, and one in ten COMMITs', () => {
  it(`${ORDERS} orders with keys, repeated until answered, give ${ORDERS} servers and ${ORDERS} charges`, async () => {
    const accounts = await Promise.all(Array.from({ length: 6 }, newAccount));
    for (const { fund } of accounts) await fund(PRICE_USD * ORDERS);
    await db.query(
      `insert into place (region_code, service_code, number)
        select region_code, service_code, number from stock, generate_series(1000, 1000 + $1::int) number`,
      [ORDERS],
    );
    let commits = 0;
    faults = () => (++commits % 10 === 0 ? 'cut before' : commits % 5 === 2 ? 'lose answer' : 'none');

    const answers = new Map<string, string>();
    let [next, sent] = [0, 0];
    const client = async () => {
      while (next < ORDERS) {
        const n = next++;
        const key = `order-${n}`;
        const rest = restClient(publicUrl, accounts[n % accounts.length]!.accessToken);
        for (;;) {
          sent++;
          const order = { service_code: 'vps-1', hostname: `h${n}` };
          const { status, body } = await rest('POST', '/v1/servers', order, { 'idempotency-key': key });
          if (status >= 500) continue;
          expect([status, body.hostname]).toEqual([200, `h${n}`]);
          answers.set(key, body.order_number);
          break;
        }
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    faults = () => 'none';

    const [counted] = await db.query(
      `select (select count(*)::int from server) as servers, (select count(distinct hostname)::int from server) as hostnames,
        (select count(*)::int from transfer where kind = 'hold') as charges, (select count(*)::int from task where process = 'server') as tasks,
        (select count(*)::int from event where type = 'server.created') as events`,
    );
    expect(counted).toEqual({ servers: ORDERS, hostnames: ORDERS, charges: ORDERS, tasks: ORDERS, events: ORDERS });
    expect(new Set(answers.values()).size).toBe(ORDERS);
    const { data } = await operator('{ books { balanced } }');
    expect(data.books.balanced).toBe(true);
    const spent = await Promise.all(accounts.map(async ({ balance }) => PRICE_USD * ORDERS - (await balance())));
    expect(spent.reduce((sum, one) => sum + one, 0)).toBeCloseTo(PRICE_USD * ORDERS, 6);
    expect(proxy.lostAnswers).toBeGreaterThan(ORDERS / 8);
    expect(proxy.cutBefore).toBeGreaterThan(ORDERS / 20);
    // Few clients notice: the service itself asks the database for the outcome of the COMMIT.
    expect(sent).toBeLessThan(ORDERS * 1.3);
  });
});
