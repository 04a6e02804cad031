/**
 * A worker in its own process that kills itself with SIGKILL at the n-th act of its driver. An act is a write to the
 * store, or a command to a controller.
 */
import { Database } from '../../../entities/database/database.ts';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import type { BareMetalHost } from '../../../provisioning/servers/drivers/bmc/host.ts';
import { controllerOf } from '../../../provisioning/servers/drivers/bmc/power.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { VAULT } from '../../setup/vault.ts';
import { die, processesOf, startWorker } from '../server-worker.ts';

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
        if (++done === Number(KILL_AT)) die();
        return result;
      };
    },
  });

const db = await Database.open(DATABASE_URL!);
const driver = new BmcDriver({
  inventory: async () => [JSON.parse(BOX!) as BareMetalHost],
  store: mortal(new Deployments(db, VAULT)),
  controller: (box) => mortal(controllerOf(box)),
  graceSeconds: 0.2,
  pollSeconds: 0.05,
});
startWorker(db, processesOf(db, driver));
