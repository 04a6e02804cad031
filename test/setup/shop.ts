/** Provisioning over a database of its own, with accounts and servers that exist as rows alone. No clock is waited for. */
import { expandScopes } from '../../entities/accounts/credential.ts';
import type { Database } from '../../entities/database/database.ts';
import { newId, newOrderNumber } from '../../entities/ids.ts';
import { verifyBooks } from '../../entities/payments/books.ts';
import { available, gateway, openBalance, post } from '../../entities/payments/ledger.ts';
import { Vault } from '../../entities/secrets.ts';
import { Server } from '../../entities/servers/server.ts';
import { Provisioning } from '../../provisioning/index.ts';
import type { PaymentDriver } from '../../provisioning/payments/drivers/driver.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import type { X402Driver } from '../../provisioning/payments/drivers/x402/driver.ts';
import type { MachineSpec } from '../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import { SERVER_LANE } from '../../provisioning/servers/steps/task.ts';
import { cronSubject } from '../../provisioning/tasks/schedule.ts';
import { LoginThrottle } from '../../resolvers/accounts/auth/throttle.ts';
import type { Context } from '../../resolvers/context.ts';

export const PRICE = 6_000_000n;
export const HOUR_MS = 3_600_000;

export interface Shop {
  db: Database;
  provisioning: Provisioning;
  account(micros: bigint): Promise<string>;
  fund(accountId: string, micros: bigint): Promise<void>;
  /** Orders were paid before time began here: each server starts where its first month is over, with a machine. */
  server(accountId: string, set?: Partial<Server>): Promise<string>;
  /** So many more of each server that there is, each due a second later than the one before; their order numbers. */
  copies(count: number): Promise<string[]>;
  read(orderNumber: string): Promise<Server>;
  balance(accountId: string): Promise<bigint>;
  events(subject: string): Promise<string[]>;
  renewals(): Promise<{ orderNumber: string; externalKey: string }[]>;
  /** Does what is due for servers now. */
  work(): Promise<unknown>;
  /** The next tick of a periodic process comes now, and is done with all that follows from it. */
  tick(process: string): Promise<void>;
  balanced(): Promise<boolean>;
}

export function openShop(
  db: Database,
  folder: string,
  payments: PaymentDriver = PAYMENTS,
  driver = new SimulatedDriver({ folder, bootSeconds: 0 }),
  x402?: X402Driver,
): Shop {
  const drivers = { VPS: driver, DEDICATED: driver };
  const provisioning = new Provisioning({
    db,
    vault: new Vault(Buffer.alloc(32)),
    drivers,
    payments: [payments],
    x402,
    // Otherwise on a busy machine a nap would be over before all that is due is done, for ever.
    pollSeconds: 600,
  });
  const worker = provisioning.newWorker();
  const fund = (accountId: string, amountMicros: bigint) =>
    db.transaction(async (tx) => {
      const sides = { debit: gateway('test'), credit: available(accountId) };
      await post(tx, accountId, [
        { kind: 'topup', ...sides, amountMicros, externalKey: newId('xfr'), description: 'Funds' },
      ]);
    });
  return {
    db,
    provisioning,
    fund,
    account: async (micros) => {
      const id = newId('acct');
      await db.query(`insert into account (id, kind) values ($1, 'AGENT')`, [id]);
      await openBalance(db, id);
      if (micros) await fund(id, micros);
      return id;
    },
    server: async (accountId, set = {}) => {
      const orderNumber = newOrderNumber('SRV');
      await db.source.manager.insert(Server, {
        ...{ id: newId('srv'), accountId, orderNumber, kind: 'VPS', status: 'RUNNING', hostname: 'srv' },
        ...{ serviceCode: 'vps-1', region: 'ams', os: 'debian-13', priceMonthMicros: PRICE, setupFeeMicros: 0n },
        ...{ paidUntil: new Date(Date.now() - 1000), ...set },
      });
      await makeMachine(driver, orderNumber, set.status === 'STOPPED' || set.suspendedFrom !== undefined);
      return orderNumber;
    },
    copies: async (count) => {
      const columns = Object.values(Server.options.columns).map(({ name }) => name!);
      const given: Record<string, string> = {
        id: `'srv_copy' || n || substr(id, 5)`,
        order_number: `'SRV-' || lpad(n::text, 4, '0') || substr(order_number, 9)`,
        paid_until: `paid_until + n * interval '1 second'`,
      };
      const rows = await db.query<{ orderNumber: string }>(
        `insert into server (${columns.join(', ')})
          select ${columns.map((column) => given[column] ?? column).join(', ')} from server, generate_series(1, $1::int) n
          returning order_number as "orderNumber"`,
        [count],
      );
      return rows.map(({ orderNumber }) => orderNumber);
    },
    read: (orderNumber) => db.source.manager.findOneByOrFail(Server, { orderNumber }),
    balance: async (accountId) =>
      (
        await db.query<{ micros: bigint }>('select available_micros as micros from balance where account_id = $1', [
          accountId,
        ])
      )[0]!.micros,
    events: async (subject) =>
      (await db.query<{ type: string }>('select type from event where subject = $1 order by id', [subject])).map(
        ({ type }) => type,
      ),
    renewals: () =>
      db.query(
        `select order_number as "orderNumber", external_key as "externalKey" from transfer where kind = 'renewal' order by id`,
      ),
    work: () => worker.drain(SERVER_LANE),
    tick: async (process) => {
      await provisioning.schedule();
      await db.query(`update task set run_at = now() + interval '1 day' where subject like 'cron:%'`);
      await db.query('update task set run_at = now(), leased_by = null where subject = $1', [cronSubject(process)]);
      await worker.drain('periodic');
    },
    balanced: async () => (await verifyBooks(db)).balanced,
  };
}

/** A customer with every scope, as a request of his would have it. */
export const contextOf = ({ db, provisioning }: Pick<Shop, 'db' | 'provisioning'>, accountId: string): Context => ({
  ...{ db, provisioning, vault: new Vault(Buffer.alloc(32)), limits: LIMITS },
  viewer: {
    ...{ accountId, kind: 'api_key', credentialId: 'key', name: 'test' },
    ...{ scopes: expandScopes('full'), expiresAt: null },
  },
  requestId: newId('req'),
  userAgent: null,
  signal: new AbortController().signal,
  stopping: new AbortController().signal,
  publicUrl: 'http://localhost:3000',
  logins: new LoginThrottle(10),
  address: null,
});
const LIMITS = { pendingTopups: 5, servers: 6 } as Context['limits'];

async function makeMachine(driver: SimulatedDriver, order: string, off: boolean) {
  const { signal } = new AbortController();
  const key = { order, generation: 1 };
  await driver.create({ ...key, ...SPEC }, signal);
  if (off) await driver.power(key, 'off', 'before', signal);
}
const SPEC: Omit<MachineSpec, 'order' | 'generation'> = {
  kind: 'VPS',
  serviceCode: 'vps-1',
  region: 'ams',
  image: 'debian-13',
  hostname: 'srv',
  sshPublicKeys: [],
  rootPassword: null,
  userData: null,
  size: { vcpus: 1, memoryMb: 2048, diskGb: 25 },
  host: null,
  network: { mac: '02:00:00:00:00:01', ipv4: null, ipv6: null, ipv6Prefix: null },
};
const PAYMENTS = new SimulatedPayments({ confirmSeconds: 0 });
