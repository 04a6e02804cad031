/**
 * A worker in its own process that kills itself with SIGKILL at the n-th act of its driver. An act is a write to the
 * store, or a command to a controller.
 */
import { Database } from '../../../entities/database/database.ts';
import { Vault } from '../../../entities/secrets.ts';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import type { BareMetalHost } from '../../../provisioning/servers/drivers/bmc/host.ts';
import { controllerOf } from '../../../provisioning/servers/drivers/bmc/power.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { serverProcess } from '../../../provisioning/servers/steps/process.ts';
import { SERVER_LANE, SERVER_PROCESS } from '../../../provisioning/servers/steps/task.ts';
import { Worker } from '../../../provisioning/tasks/worker.ts';
import { VAULT_KEY } from './room.ts';

const { DATABASE_URL, BOX, KILL_AT } = process.env;
const DEEDS = new Set(['begin', 'renew', 'wipe', 'plan', 'cycled', 'release', 'on', 'off', 'shutDown', 'bootFrom']);

let done = 0;
/** The same object, but the process dies at the n-th call. */
const mortal = <T extends object>(object: T): T =>
  new Proxy(object, {
    get: (target, name) => {
      const method = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      if (!DEEDS.has(String(name))) return method.bind(target);
      return async (...given: unknown[]) => {
        const result = await method.apply(target, given);
        if (++done === Number(KILL_AT)) process.kill(process.pid, 'SIGKILL');
        return result;
      };
    },
  });

const db = await Database.open(DATABASE_URL!);
const vault = new Vault(VAULT_KEY);
const driver = new BmcDriver({
  inventory: async () => [JSON.parse(BOX!) as BareMetalHost],
  store: mortal(new Deployments(db, vault)),
  controller: (box) => mortal(controllerOf(box)),
  graceSeconds: 0.2,
  pollSeconds: 0.05,
});
const process_ = serverProcess({ db, vault, drivers: { VPS: driver, DEDICATED: driver }, pollSeconds: 0.1 });
new Worker(
  db,
  { [SERVER_PROCESS]: process_ },
  { lanes: { [SERVER_LANE]: 4 }, leaseSeconds: 1, pollSeconds: 0.1 },
).start();
