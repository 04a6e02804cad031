/** The rows that both servers read: one account reads its servers, another one orders. */
import { Account } from '../entities/accounts/account.ts';
import { ApiKey } from '../entities/accounts/credential.ts';
import { SshKey } from '../entities/accounts/ssh-key.ts';
import type { Database } from '../entities/database/database.ts';
import { newId, newOrderNumber } from '../entities/ids.ts';
import { available, gateway, openBalance, post } from '../entities/payments/ledger.ts';
import { digest, mintCredential } from '../entities/secrets.ts';
import { Server } from '../entities/servers/server.ts';

export interface SeededAccount {
  id: string;
  /** An API key with every scope. */
  credential: string;
}
export interface Seeded {
  reader: SeededAccount;
  /** One of the servers of the reader. */
  orderNumber: string;
  orderer: SeededAccount;
}

/** More than a page of 50, so that the list has a second page. */
const SERVERS = 60;
/** More places and addresses in each region than one slice can order. */
const ROOM = 30_000;
/** The balance of the ordering account: far more than a run can spend. */
const FUNDS_MICROS = 10n ** 15n;
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVPNTTGHN0XCRiJ3hvO4Px18PTrSSxOhcJ9w51Eswh3';

/** @param room additional places of one tier, and addresses, in each region */
export async function seed(db: Database, room = ROOM): Promise<Seeded> {
  const [reader, orderer] = [await newAccount(db), await newOrderer(db)];
  const servers = Array.from({ length: SERVERS }, (_, index) => serverOf(reader.id, index));
  await db.source.manager.insert(Server, servers);
  await addRoom(db, room);
  await db.query('vacuum (analyze)');
  return { reader, orderer, orderNumber: servers[SERVERS / 2]!.orderNumber };
}

/** Returns an account with more funds than a run can spend. */
export async function newOrderer(db: Database): Promise<SeededAccount> {
  const orderer = await newAccount(db);
  await db.transaction((tx) =>
    post(tx, orderer.id, {
      kind: 'adjustment',
      debit: gateway('bench'),
      credit: available(orderer.id),
      amountMicros: FUNDS_MICROS,
      externalKey: `bench ${orderer.id}`,
      description: 'Funds of the benchmark',
    }),
  );
  await db.source.manager.insert(SshKey, {
    id: newId('sshkey'),
    accountId: orderer.id,
    name: 'laptop',
    publicKey: PUBLIC_KEY,
    type: 'ssh-ed25519',
    bits: 256,
    fingerprint: 'SHA256:bench',
  });
  return orderer;
}

/** Adds places of one tier, and addresses, in every region. */
export async function addRoom(db: Database, room = ROOM): Promise<void> {
  await db.query(
    `with added as (
        insert into place (region_code, service_code, number)
        select region_code, service_code, number from stock cross join generate_series(1000, 1000 + $1::int) number
        where service_code = 'vps-1' returning region_code)
    update stock set total = total + $1 + 1 where service_code = 'vps-1'`,
    [room],
  );
  await db.query(
    `insert into address (address, family, kind, region_code)
      select case family when 'IPV4' then '10.0.0.0'::inet + (position * 65536 + n)
          else format('2001:db8:%s:%s::/64', to_hex(65535 - position), to_hex(n))::inet end, family, 'SIMULATED', code
      from (select code, row_number() over (order by position) as position from catalog_item where kind = 'bastion') bastion,
        generate_series(1, $1::int) n, unnest(array['IPV4', 'IPV6']) family`,
    [room],
  );
}

async function newAccount(db: Database): Promise<SeededAccount> {
  const [id, credential] = [newId('acct'), mintCredential('live')];
  await db.source.manager.insert(Account, { id, kind: 'PERSON', email: `${id}@example.org` });
  await db.transaction((tx) => openBalance(tx, id));
  await db.source.manager.insert(ApiKey, {
    id: newId('key'),
    accountId: id,
    name: 'bench',
    scope: 'full',
    prefix: credential.slice(0, 13),
    digest: digest(credential),
    status: 'ACTIVE',
  });
  return { id, credential };
}

/** The row of a running server. */
export const serverOf = (accountId: string, index: number) => ({
  id: newId('srv'),
  accountId,
  orderNumber: newOrderNumber('SRV'),
  kind: 'VPS' as const,
  status: 'RUNNING' as const,
  hostname: `web-${index}.example.org`,
  serviceCode: 'vps-2',
  region: 'zrh',
  os: 'debian-13',
  ipv4: `203.0.113.${index}`,
  ipv6: `2001:db8:0:${index}::1`,
  ipv6Prefix: `2001:db8:0:${index}::/64`,
  reverseDns: [{ ip: `203.0.113.${index}`, ptr: `web-${index}.example.org` }],
  sshKeyIds: [newId('sshkey')],
  sshPublicKeys: [PUBLIC_KEY],
  labels: { env: 'prod', role: 'web' },
  priceMonthMicros: 12_000_000n,
  setupFeeMicros: 0n,
  paidUntil: new Date(Date.now() + 20 * 86_400_000),
});

/**
 * Deletes the orders and frees their places, so that every slice starts with equal tables. The ledger is append-only
 * and stays.
 */
export async function clear(db: Database, { id }: SeededAccount): Promise<number> {
  const [ordered] = await db.query<{ count: number }>(
    `with gone as (delete from server where account_id = $1 returning order_number),
      ended as (delete from task using gone where subject = order_number),
      left_places as (update place set order_number = null from gone where place.order_number = gone.order_number),
      left_addresses as (update address set held_by = null from gone where held_by = gone.order_number)
    select count(*)::int as count from gone`,
    [id],
  );
  await db.query('vacuum (analyze) server, task, balance, place, address');
  return ordered!.count;
}
