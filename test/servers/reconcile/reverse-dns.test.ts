/** Reverse DNS: the worker sends each change until the operator's DNS has accepted it. The tests wait for no clock. */
import { readFileSync } from 'node:fs';
import { beforeEach, expect, it } from 'vitest';
import { FIND_CHANGED_NAMES } from '../../../entities/servers/reverse-dns.ts';
import { REVERSE_DNS_PROCESS } from '../../../provisioning/servers/reconcile/reverse-dns.ts';
import { newWebhookSecret } from '../../../provisioning/webhooks/sign.ts';
import { asOwner, newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { startReceiver, verify } from '../../setup/receiver.ts';
import { openShop } from '../../setup/shop.ts';

const receiver = await startReceiver();
atEnd(() => receiver.close());
const secret = newWebhookSecret();
const shop = await openShop(atEnd, { reverseDns: { url: receiver.url, secret } });
const { db, provisioning } = shop;
const worker = provisioning.newWorker();
/** Lets the names rest that have failed. */
const rest = () => db.query(`update reverse_dns_told set refused_at = refused_at - interval '1 minute'`);
const tick = async () => {
  await provisioning.schedule();
  await rest();
  await db.query(`update task set run_at = now() + interval '1 day'`);
  await db.query(`update task set run_at = now() where process = $1`, [REVERSE_DNS_PROCESS]);
  await worker.drain('periodic');
};
const error = async () =>
  (await db.query<{ error: string | null }>('select error from task where process = $1', [REVERSE_DNS_PROCESS]))[0]!
    .error;
const told = () =>
  receiver.received.splice(0).map((message) => {
    expect(verify(secret, message)).toEqual(message.body);
    return message.body;
  });
const name = (orderNumber: string, names: object[]) =>
  db.query('update server set reverse_dns = $2 where order_number = $1', [orderNumber, JSON.stringify(names)]);

/** All changed names: many of each account, and refused ones, too. */
const ALL = [1_000, 1_000, 0];

let orderNumber: string;
beforeEach(async () => {
  await truncate(db, 'server, reverse_dns_told, task');
  receiver.received.length = 0;
  receiver.answer = (response) => void response.writeHead(204).end();
  orderNumber = await shop.server(await shop.account(0n));
});

it('the DNS gets each change once, signed, and each removal', async () => {
  await name(orderNumber, [
    { ip: '192.0.2.7', ptr: 'a.example.org' },
    { ip: '2001:db8::1', ptr: 'b.example.org' },
  ]);
  await tick();
  expect(told()).toEqual([
    { ip: '192.0.2.7', ptr: 'a.example.org' },
    { ip: '2001:db8::1', ptr: 'b.example.org' },
  ]);
  await tick();
  expect(told()).toEqual([]);
  await name(orderNumber, [{ ip: '192.0.2.7', ptr: 'c.example.org' }]);
  await tick();
  expect(told()).toEqual([
    { ip: '192.0.2.7', ptr: 'c.example.org' },
    { ip: '2001:db8::1', ptr: null },
  ]);
  await db.query(`update server set status = 'DELETED'`);
  await tick();
  expect(told()).toEqual([{ ip: '192.0.2.7', ptr: null }]);
  await tick();
  expect(told()).toEqual([]);
});

it('the DNS gets a failed name again, and the accepted ones only once', async () => {
  await name(
    orderNumber,
    [1, 2, 3].map((n) => ({ ip: `192.0.2.${n}`, ptr: `n${n}.example.org` })),
  );
  let answers = 0;
  receiver.answer = (response) => void response.writeHead(++answers === 2 ? 500 : 200).end();
  await tick();
  expect(told().map(({ ip }) => ip)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
  await tick();
  expect(told().map(({ ip }) => ip)).toEqual(['192.0.2.2']);
});

it('the DNS gets the other names if it refuses one, and that one again in the next round', async () => {
  await name(
    orderNumber,
    [1, 2, 3].map((n) => ({ ip: `192.0.2.${n}`, ptr: `n${n}.example.org` })),
  );
  receiver.answer = (response) =>
    void response.writeHead(receiver.received.at(-1)!.body.ip === '192.0.2.2' ? 422 : 200).end();
  await tick();
  expect(told().map(({ ip }) => ip)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
  await tick();
  expect(told().map(({ ip }) => ip)).toEqual(['192.0.2.2']);
});

it('the operator sees stuck work while the DNS accepts nothing, and the worker follows no redirects', async () => {
  await name(orderNumber, [{ ip: '192.0.2.7', ptr: 'a.example.org' }]);
  receiver.answer = (response) => void response.writeHead(500).end();
  await tick();
  expect(await error()).toBe("The operator's DNS answered 500.");
  receiver.answer = (response) => void response.writeHead(302, { location: receiver.url }).end();
  await tick();
  expect(await error()).toBe("The operator's DNS cannot be reached.");
  expect(told()).toHaveLength(2);
});

it('the operator sees stuck work while the DNS fails for the names of many accounts', async () => {
  const accounts = 30;
  for (let n = 0; n < accounts; n++)
    await name(await shop.server(await shop.account(0n)), [{ ip: `192.0.2.${n}`, ptr: 'a.example.org' }]);
  receiver.answer = (response) => void response.writeHead(500).end();
  await tick();
  expect(told()).toHaveLength(accounts);
  expect(await error()).toBe("The operator's DNS answered 500.");
  receiver.answer = (response) => void response.writeHead(204).end();
  await tick();
  expect(new Set(told().map(({ ip }) => ip)).size).toBe(accounts);
  expect(await error()).toBeNull();
});

it('one name for which the DNS fails does not keep the others waiting', async () => {
  await name(orderNumber, [{ ip: '192.0.2.1', ptr: 'bad.example.org' }]);
  const others = [];
  for (let n = 2; n < 6; n++) others.push(await shop.server(await shop.account(0n)));
  for (const [n, other] of others.entries()) await name(other, [{ ip: `192.0.2.${n + 2}`, ptr: 'good.example.org' }]);
  receiver.answer = (response) =>
    void response.writeHead(receiver.received.at(-1)!.body.ip === '192.0.2.1' ? 500 : 200).end();
  await tick();
  expect(new Set(told().map(({ ip }) => ip)).size).toBe(5);
  await tick();
  expect(told().map(({ ip }) => ip)).toEqual(['192.0.2.1']);
});

it('accounts about whose names the DNS is silent keep others waiting for one tick, also beside refused names', async () => {
  const good = '192.0.2.100';
  for (let n = 0; n < 20; n++) {
    const names = Array.from({ length: 3 }, (_, i) => ({ ip: `192.0.2.${n * 3 + i}`, ptr: 'a.example.org' }));
    await name(await shop.server(await shop.account(0n)), names);
  }
  await name(await shop.server(await shop.account(0n)), [{ ip: good, ptr: 'good.example.org' }]);
  receiver.answer = (response) => {
    const { ip } = receiver.received.at(-1)!.body;
    if (ip === good) response.writeHead(204).end();
    else if (ip.length < 10) response.writeHead(422).end();
    // The worker follows no redirects, so to it the DNS is silent. Meanwhile all other names have rested.
    else void rest().then(() => response.writeHead(302, { location: receiver.url }).end());
  };
  const heard: string[] = [];
  for (let ticks = 0; ticks < 6; ticks++) {
    await tick();
    heard.push(...told().map(({ ip }) => ip));
  }
  expect(heard).toContain(good);
});

it('the DNS gets many names at once', async () => {
  const names = Array.from({ length: 120 }, (_, n) => ({ ip: `192.0.2.${n}`, ptr: `n${n}.example.org` }));
  await name(orderNumber, names);
  await tick();
  expect(new Set(told().map(({ ip }) => ip)).size).toBe(120);
});

it('an account with many names does not keep the others waiting', async () => {
  const names = Array.from({ length: 40 }, (_, n) => ({ ip: `192.0.2.${n}`, ptr: `n${n}.example.org` }));
  await name(orderNumber, names);
  await name(await shop.server(await shop.account(0n)), [{ ip: '198.51.100.1', ptr: 'other.example.org' }]);
  await tick();
  expect(told().findIndex(({ ip }) => ip === '198.51.100.1')).toBeLessThan(5);
});

it('a name that the DNS never had leaves no row', async () => {
  for (let n = 0; n < 5; n++) await name(orderNumber, [{ ip: `192.0.2.${n}`, ptr: 'a.example.org' }]);
  await db.query(`update server set status = 'DELETED'`);
  expect(await db.query('select ip from reverse_dns_told')).toEqual([]);
});

it('the DNS forgets a name that its server gave up while the DNS got it', async () => {
  await name(orderNumber, [{ ip: '192.0.2.7', ptr: 'a.example.org' }]);
  const [began, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  receiver.answer = (response) => {
    began.resolve();
    void go.promise.then(() => response.writeHead(204).end());
  };
  const ticking = tick();
  await began.promise;
  await name(orderNumber, []);
  go.resolve();
  await ticking;
  await tick();
  expect(told()).toEqual([
    { ip: '192.0.2.7', ptr: 'a.example.org' },
    { ip: '192.0.2.7', ptr: null },
  ]);
});

it('an address that another server got keeps the name of that server', async () => {
  const [names, others] = [[{ ip: '192.0.2.7', ptr: 'a.example.org' }], [{ ip: '192.0.2.7', ptr: 'b.example.org' }]];
  await name(orderNumber, names);
  await tick();
  await name(await shop.server(await shop.account(0n)), others);
  await name(orderNumber, []);
  receiver.received.splice(0, 1);
  await tick();
  expect(told()).toEqual([{ ip: '192.0.2.7', ptr: 'b.example.org' }]);
  await tick();
  expect(told()).toEqual([]);
});

it('a round reads only the names that differ, however many the DNS has', async () => {
  const names = Array.from({ length: 1_000 }, (_, n) => ({
    ip: `10.0.${n >> 8}.${n & 255}`,
    ptr: `n${n}.example.org`,
  }));
  await name(orderNumber, names);
  await db.query('update reverse_dns_told set ptr = wanted');
  await name(orderNumber, [{ ip: '10.0.0.0', ptr: 'new.example.org' }, ...names.slice(1)]);
  await asOwner(db, 'vacuum analyze reverse_dns_told');
  const [plan] = await db.query(`explain (format json) ${FIND_CHANGED_NAMES.text}`, ALL);
  expect(JSON.stringify(plan)).toContain('reverse_dns_due');
  await tick();
  expect(told()).toEqual([{ ip: '10.0.0.0', ptr: 'new.example.org' }]);
});

it('the migration takes over the names that servers want, and those that the DNS has', async () => {
  const old = await newDatabase();
  await asOwner(
    old,
    `drop trigger server_names on server; drop trigger server_names_of_new on server; drop function want_names;
      alter table reverse_dns_told drop column wanted, drop column order_number, drop column account_id, drop column refused_at,
        alter column ptr set not null;
      create index server_reverse_dns on server (id);
      insert into reverse_dns_told (ip, ptr) values ('192.0.2.1', 'same.example.org'), ('192.0.2.3', 'gone.example.org')`,
  );
  await old.query(
    `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, price_month_micros,
        setup_fee_micros, reverse_dns)
      values ('srv_1', 'a', 'SRV-1', 'VPS', 'RUNNING', 'h', 'vps-1', 'zrh', 'x', 1, 0,
        '[{"ip": "192.0.2.1", "ptr": "same.example.org"}, {"ip": "192.0.2.2", "ptr": "new.example.org"}]')`,
  );
  const migration = (file: string) => readFileSync(`entities/database/migrations/${file}`, 'utf8');
  await asOwner(old, migration('0051-reverse-dns.sql'));
  await asOwner(old, migration('0053-names-and-ends.sql').split('-- The end of a delivery')[0]!);
  const names = await FIND_CHANGED_NAMES.all(old, ALL);
  expect(names.sort((one, other) => (one.accountId < other.accountId ? -1 : 1))).toEqual([
    { ip: '192.0.2.2', ptr: 'new.example.org', accountId: 'a' },
    { ip: '192.0.2.3', ptr: null, accountId: 'operator' },
  ]);
});
