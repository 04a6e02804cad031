/**
 * The power of a host, and the power cycles of deployments. A cycle that was interrupted continues, and is not repeated. A
 * process that lost the deployment sends its host no more commands.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, type Power } from '../driver.ts';
import type { Controller } from './controller.ts';
import type { DeploymentStore, HostDeployment } from './deployment.ts';
import type { BareMetalHost } from './host.ts';
import { IpmiController } from './ipmi.ts';
import { RedfishController } from './redfish.ts';

export interface Patience {
  /** Seconds that a system has to shut down before the driver cuts its power. */
  graceSeconds: number;
  /** Seconds that a controller has to carry out a command that it accepted. */
  powerSeconds: number;
  pollSeconds: number;
  /** Seconds without news from a wiper until the driver restarts it. The pause doubles each time, up to six hours. */
  silenceSeconds: number;
}

export const controllerOf = (host: BareMetalHost): Controller =>
  host.bmc.protocol === 'redfish' ? new RedfishController(host) : new IpmiController(host);

/** The same controller, but it refuses commands once another process has continued the deployment. */
export function fenced(
  controller: Controller,
  store: DeploymentStore,
  of: HostDeployment,
  boot: BareMetalHost['boot'],
): Controller {
  const check = async (signal: AbortSignal) => {
    const now = await store.find({ order: of.orderNumber, generation: of.generation });
    signal.throwIfAborted();
    if (now?.id !== of.id || now.run !== of.run)
      throw new DriverError('failed', 'Another process has continued with the machine.');
  };
  const act =
    (what: 'on' | 'off' | 'shutDown') =>
    async (signal: AbortSignal): Promise<void> => {
      await check(signal);
      await controller[what](signal);
    };
  return {
    power: (signal) => controller.power(signal),
    on: act('on'),
    off: act('off'),
    shutDown: act('shutDown'),
    bootFrom: async (device, signal) => {
      await check(signal);
      await controller.bootFrom(device, signal, device === 'PXE' && boot === 'MEDIUM' ? store.mediumOf(of) : undefined);
    },
    hasMedium: (signal) => controller.hasMedium(signal),
    users: (signal) => controller.users(signal),
    disable: async (user, signal) => {
      await check(signal);
      await controller.disable(user, signal);
    },
  };
}

/**
 * Carries out the rest of a power cycle: off, then on from the next device. It writes each half when it is done. A host that
 * is on in the second half was turned on by a process that died before writing it.
 */
export async function carryCycle(
  controller: Controller,
  store: DeploymentStore,
  deployment: HostDeployment,
  { gently = false, ...patience }: Patience & { gently?: boolean },
  signal: AbortSignal,
): Promise<void> {
  let left = deployment.cycle;
  if (left === 'OFF') {
    await turnOff(controller, patience, gently, signal);
    await store.cycled(deployment);
    left = 'ON';
  }
  if (left !== 'ON') return;
  if ((await controller.power(signal)) === 'off') {
    await controller.bootFrom(deployment.device, signal);
    await controller.on(signal);
    await reach(controller, 'on', patience.powerSeconds, patience, signal);
  }
  await store.cycled({ ...deployment, cycle: 'ON' });
}

/** @param gently first asks the system to shut down */
export async function turnOff(
  controller: Controller,
  patience: Patience,
  gently: boolean,
  signal: AbortSignal,
): Promise<void> {
  if ((await controller.power(signal)) === 'off') return;
  if (gently) {
    await controller.shutDown(signal).catch(ignoreRefusal);
    if (await comes(controller, 'off', patience.graceSeconds, patience, signal)) return;
  }
  await controller.off(signal);
  await reach(controller, 'off', patience.powerSeconds, patience, signal);
}

/** Ignores controllers that cannot ask a system to shut down. The driver cuts the power instead. */
function ignoreRefusal(error: unknown) {
  if (!(error instanceof DriverError && error.code === 'failed')) throw error;
}

async function reach(controller: Controller, want: Power, seconds: number, patience: Patience, signal: AbortSignal) {
  if (!(await comes(controller, want, seconds, patience, signal)))
    throw new DriverError('failed', `The machine did not turn ${want} within ${seconds} seconds.`);
}

async function comes(
  controller: Controller,
  want: Power,
  seconds: number,
  { pollSeconds }: Patience,
  signal: AbortSignal,
): Promise<boolean> {
  for (const end = Date.now() + seconds * 1000; ; await sleep(pollSeconds * 1000, undefined, { signal })) {
    // A question that began in time may have been answered long after it, so it is not the last one.
    const isLast = Date.now() > end;
    if ((await controller.power(signal)) === want) return true;
    if (isLast) return false;
  }
}
