/** A shop: provisioning with simulated machines and payments, with its own database and without listeners. */
import { randomBytes } from 'node:crypto';
import { expandScopes } from '../../entities/accounts/credential.ts';
import type { Database } from '../../entities/database/database.ts';
import { newId, newOrderNumber } from '../../entities/ids.ts';
import { verifyBooks } from '../../entities/payments/books.ts';
import { ADJUSTMENT, available, openBalance, post } from '../../entities/payments/ledger.ts';
import { Server } from '../../entities/servers/server.ts';
import { Provisioning, type ProvisioningOptions } from '../../provisioning/index.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import type { DriverErrorCode, HardwareDriver, MachineSpec } from '../../provisioning/servers/drivers/driver.ts';
import type { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import { SERVER_LANE } from '../../provisioning/servers/task.ts';
import { cronSubject } from '../../provisioning/tasks/schedule.ts';
import { LoginAttempts } from '../../resolvers/accounts/auth/login-attempts.ts';
import { LoginThrottle } from '../../resolvers/accounts/auth/throttle.ts';
import { SecurityLog } from '../../resolvers/accounts/security-log.ts';
import type { Context } from '../../resolvers/context.ts';
import { RefusingDriver } from '../servers/drivers/refusing-driver.ts';
import { newDatabase } from './database.ts';
import type { OnEnd } from './spawn.ts';
import { newFolder, removeFolder } from './spawn.ts';
import { VAULT } from './vault.ts';

export const PRICE = 6_000_000n;
/** Connections of a shop. Tests open some hundred shops, and PostgreSQL takes 20 ms of CPU for a connection. */
const POOL_SIZE = 3;
export const HOUR_MS = 3_600_000;
export const LIMITS: Context['limits'] = {
  apiKeys: 10,
  servers: 25,
  sshKeys: 50,
  webhooks: 10,
  agentEntries: 10,
  agentChangesPerHour: 60,
  pendingTopups: 5,
  unpaidTopupsPerDay: 30,
  openPayments: 5,
  sessions: 100,
  unpaidSessionsPerHour: 1_000_000,
  oauthClients: 20,
};

/** Differences from a new shop. A second process opens the shop of the first with its database and its folder. */
export interface ShopOptions<Driver extends SimulatedDriver> extends Partial<ProvisioningOptions> {
  /** The state of the simulated machines. */
  folder?: string;
  /** Default: a driver that refuses the calls that the test names. */
  driver?: (folder: string) => Driver;
  refused?: readonly string[];
  refusedAs?: DriverErrorCode;
  /** Puts another driver between the service and the simulated one. */
  wrap?: (driver: Driver) => HardwareDriver;
}

export interface Shop<Driver extends SimulatedDriver = RefusingDriver> {
  db: Database;
  url: string;
  folder: string;
  driver: Driver;
  provisioning: Provisioning;
  /** Creates provisioning of the same shop for another process, or with other drivers. */
  newProvisioning(changes: Partial<ProvisioningOptions>): Provisioning;
  account(micros: bigint): Promise<string>;
  fund(accountId: string, micros: bigint): Promise<void>;
  /** Inserts a server with a machine whose paid first month is over. */
  server(accountId: string, set?: Partial<Server>): Promise<string>;
  /** Copies each server so many times, each due a second after the one before. @returns their order numbers */
  copies(count: number): Promise<string[]>;
  read(orderNumber: string): Promise<Server>;
  balance(accountId: string): Promise<bigint>;
  events(subject: string): Promise<string[]>;
  renewals(): Promise<{ orderNumber: string; externalKey: string }[]>;
  /** Runs all due tasks of servers. */
  work(): Promise<unknown>;
  /** Runs a periodic process now, and all tasks that follow. */
  tick(process: string): Promise<void>;
  balanced(): Promise<boolean>;
}

export async function openShop<Driver extends SimulatedDriver = RefusingDriver>(
  onEnd: OnEnd,
  options: ShopOptions<Driver> = {},
): Promise<Shop<Driver>> {
  const { folder = newFolder(), refused = [], refusedAs, driver: newDriver, wrap, ...changed } = options;
  if (!options.folder) onEnd(() => removeFolder(folder));
  const db = options.db ?? (await newDatabase(onEnd, { poolSize: POOL_SIZE }));
  // The key of `contextOf`.
  await db.query(
    `insert into api_key (id, account_id, name, scope, prefix, digest, status)
      values ('key', 'acct_test', 'test', 'full', 'svc_live_test', 'test', 'ACTIVE') on conflict do nothing`,
  );
  const driver = newDriver?.(folder) ?? (new RefusingDriver(folder, refused, refusedAs) as SimulatedDriver as Driver);
  const provisioningOptions: ProvisioningOptions = {
    db,
    vault: VAULT,
    drivers: bothKinds(wrap?.(driver) ?? driver),
    payments: [new SimulatedPayments({ confirmSeconds: 0 })],
    // With shorter naps, a busy machine would never reach the end of the due tasks.
    pollSeconds: 600,
    ...changed,
  };
  const newProvisioning = (changes: Partial<ProvisioningOptions>) =>
    new Provisioning({ ...provisioningOptions, ...changes });
  const provisioning = newProvisioning({});
  const worker = provisioning.newWorker();
  return {
    ...{ db, folder, driver, provisioning, newProvisioning },
    url: (db.source.options as { url: string }).url,
    fund: (accountId, micros) => fundAccount(db, accountId, micros),
    account: async (micros) => {
      const id = newId('acct');
      await db.query(`insert into account (id, kind) values ($1, 'AGENT')`, [id]);
      await db.transaction((tx) => openBalance(tx, id));
      if (micros) await fundAccount(db, id, micros);
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
        // Rotates the last characters, because the copied number may begin with digits, too.
        order_number: `'SRV-' || lpad(n::text, 4, '0') || substr(order_number, 10) || substr(order_number, 9, 1)`,
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

/** Posts money to the balance of an account, as a top-up does in the end. */
export const fundAccount = (db: Database, accountId: string, amountMicros: bigint): Promise<void> =>
  db.transaction(async (tx) => {
    const sides = { debit: ADJUSTMENT, credit: available(accountId) };
    const rest = { amountMicros, externalKey: newId('xfr'), description: 'Funds' };
    await post(tx, accountId, { kind: 'topup', ...sides, ...rest });
  });

/** The drivers of a service with one driver for all servers. */
export const bothKinds = (driver: HardwareDriver) => ({ VPS: driver, DEDICATED: driver });

/** A throttle whose counts no other one shares. */
export const newLoginThrottle = (db: Database, failuresMax = 10): LoginThrottle => {
  const attempts = new LoginAttempts(db, (error) => console.error(error));
  return new LoginThrottle(failuresMax, attempts, randomBytes(32));
};

/** A request of a customer whose key has every scope. */
export const contextOf = ({ db, provisioning }: Pick<Shop, 'db' | 'provisioning'>, accountId: string): Context => ({
  ...{ db, provisioning, vault: VAULT, limits: LIMITS },
  viewer: {
    ...{ accountId, kind: 'api_key', credentialId: 'key', name: 'test' },
    ...{ scopes: expandScopes('full'), expiresAt: null },
  },
  requestId: newId('req'),
  userAgent: null,
  signal: new AbortController().signal,
  stopping: new AbortController().signal,
  publicUrl: 'http://localhost:3000',
  logins: newLoginThrottle(db),
  registrations: { perMinute: 1_000_000, proofBits: 1 },
  operatorLimitMicros: 0n,
  backupDaysMax: 7,
  features: new Set(),
  security: new SecurityLog(db, async () => {}),
  countUnpaid: async () => {},
  address: null,
});

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
