/**
 * `node bench/engines/look.ts`, a part of `npm run bench`. A worker looks at an engine with a thousand machines, and at one with ten.
 * It counts the requests of each look, and the CPU of the worker. The engine is another process, and answers as LXD does.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Database } from '../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { newOrderNumber } from '../../entities/ids.ts';
import { Server } from '../../entities/servers/server.ts';
import type { MachineSpec } from '../../provisioning/servers/drivers/driver.ts';
import { instanceOf } from '../../provisioning/servers/drivers/lxc/instance.ts';
import { LxcDriver } from '../../provisioning/servers/drivers/lxc/lxc.ts';
import { macOf } from '../../provisioning/servers/placement/spec.ts';
import { observerProcess } from '../../provisioning/servers/reconcile/observe.ts';
import type { LeasedTask, Process } from '../../provisioning/tasks/tasks.ts';
import { newFolder, removeFolder } from '../../test/setup/spawn.ts';
import { median, print } from '../figure.ts';
import { run, stops } from '../run.ts';
import { newOrderer, serverOf } from '../seed.ts';

const [FEW, MANY, LOOKS] = [10, 1000, 15];
const CPU_MS_MAX = 200;
const USER_DATA = `#!/bin/sh\n${'# The first boot of a customer.\n'.repeat(30)}`;
const SIZE = { vcpus: 2, memoryMb: 4096, diskGb: 60 };
const PLACE = { project: 'freehold', pool: 'machines', network: 'machines', nameservers: ['9.9.9.9'] };

if (process.send) await answer();
else await run(bench);

async function bench() {
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  const postgres = await startEmbeddedPostgres(folder);
  stops.push(postgres.stop);
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  const db = await Database.open(postgres.ownerUrl, { poolSize: 2 });
  stops.push(() => db.close());
  const { id } = await newOrderer(db);
  const few = await looks(db, join(folder, 'few.socket'), await addServers(db, id, FEW));
  const more = await addServers(db, id, MANY);
  await db.query('delete from server where order_number <> all($1)', [more]);
  const many = await looks(db, join(folder, 'many.socket'), more);
  console.log(
    `A look at ${MANY} machines sends ${many.requests} requests and takes ${many.cpuMs.toFixed(0)} ms of CPU.`,
  );
  print({ name: `requests for the machines of an engine, in a look at ${MANY}`, ratio: many.lists, bar: 1 });
  print({
    name: `all requests of a look at ${MANY} machines, to those at ${FEW}`,
    ratio: many.requests / few.requests,
    bar: 1,
  });
  print({ name: `ms of CPU for a look at ${MANY} machines`, ratio: many.cpuMs, bar: CPU_MS_MAX });
}

async function addServers(db: Database, accountId: string, count: number): Promise<string[]> {
  const rows = Array.from({ length: count }, (_, index) => ({
    ...serverOf(accountId, index),
    ...{ orderNumber: newOrderNumber('SRV'), ipv4: null, ipv6: null, ipv6Prefix: null },
  }));
  await db.source.manager.insert(Server, rows);
  await db.query('vacuum (analyze)');
  return rows.map(({ orderNumber }) => orderNumber);
}

/** @returns the requests of a look, those of them for lists of machines, and the median of its CPU in milliseconds */
async function looks(db: Database, socketPath: string, orders: string[]) {
  const engine = fork(import.meta.filename, { stdio: 'inherit' });
  stops.push(() => engine.kill());
  const asked = async (): Promise<string[]> => {
    engine.send('asked');
    return (await once(engine, 'message'))[0];
  };
  engine.send({ socketPath, orders });
  await once(engine, 'message');
  const driver = new LxcDriver({ endpoints: [{ socketPath }], ...PLACE });
  const connected = {
    ...{ name: 'lxc', kinds: ['VPS'], engine: null, region: null, revision: null, isChecked: true },
    driver: async () => driver,
  };
  const process = observerProcess(db, { all: async () => [connected] }, assert.ifError);
  let requests: string[] = [];
  const cpu: number[] = [];
  for (let n = 0; n < LOOKS; n++) {
    // The first looks also read facts about the engine, which hold for a minute.
    cpu.push(await look(db, process));
    if (!n) await asked();
    else requests = await asked();
  }
  const found = await db.query('select kind, detail from finding limit 3');
  assert.deepEqual(found, [], 'The look found differences.');
  const lists = requests.filter((one) => one.startsWith('GET /1.0/instances'));
  return { requests: requests.length, lists: lists.length, cpuMs: median(cpu.slice(3)) };
}

/** Runs the step of the observer, and commits its effect. @returns the milliseconds of CPU of this process */
async function look(db: Database, { steps }: Process): Promise<number> {
  const task = { data: {}, aborted: new AbortController().signal, now: () => new Date() } as unknown as LeasedTask;
  const before = process.cpuUsage();
  const { commit } = await steps.start!(task);
  await db.transaction(async (tx) => void (await commit!(tx)));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The engine: it answers on its socket, and tells the requests since it was asked for them. */
async function answer() {
  const [{ socketPath, orders }] = (await once(process, 'message')) as [{ socketPath: string; orders: string[] }];
  const requests: string[] = [];
  const answers: Record<string, unknown> = {
    '/1.0': { auth: 'trusted', environment: { server: 'lxd', server_clustered: false, server_name: 'n1' } },
    '/1.0/projects/freehold': { config: {} },
    '/1.0/networks/machines': { managed: false, config: {} },
    '/1.0/resources': { cpu: { total: 256 }, memory: { total: 2 ** 43 } },
    '/1.0/storage-pools/machines/resources': { space: { total: 2 ** 50, used: 2 ** 40 } },
    '/1.0/images/aliases': [{ name: 'debian-13' }],
    '/1.0/instances': orders.map(shown),
  };
  const texts = Object.fromEntries(
    Object.entries(answers).map(([path, metadata]) => [path, JSON.stringify({ type: 'sync', metadata })]),
  );
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.end(texts[request.url!.split('?')[0]!] ?? JSON.stringify({ type: 'error', error_code: 404 }));
  }).listen(socketPath);
  await once(server, 'listening');
  process.on('message', () => process.send!(requests.splice(0)));
  process.send!('ready');
}

/** An instance as LXD shows it, with everything a second time for its profiles. */
function shown(order: string, index: number) {
  const key = { order, generation: 1 };
  const address = `10.${index >> 8}.${index & 255}.2`;
  const spec: MachineSpec = {
    ...{ ...key, kind: 'VPS', serviceCode: 'vps-2', region: 'zrh', image: 'debian-13', hostname: 'web' },
    ...{ sshPublicKeys: ['ssh-ed25519 AAAA'], rootPassword: null, userData: USER_DATA, size: SIZE, host: null },
    network: {
      mac: macOf(key),
      ipv4: { address, prefixLength: 24, gateway: '10.0.0.1' },
      ipv6: null,
      ipv6Prefix: null,
    },
  };
  const network = { name: 'machines', managed: false, ipv6: false, config: {} };
  const place = { network, pool: 'machines', nameservers: ['9.9.9.9'], polices: true };
  const { config, devices, ...made } = instanceOf(spec, place);
  const all = { ...config, 'user.freehold-ready': '1', 'volatile.last_state.power': 'RUNNING' };
  return {
    ...{ ...made, status: 'Running', location: 'none', config: all, devices },
    ...{ expanded_config: all, expanded_devices: devices },
  };
}
