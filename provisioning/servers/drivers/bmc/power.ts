/**
 * The power of a host, and the cycles that a deployment needs: so that what was killed half way is not done twice, and so
 * that whoever was only thought to be dead tells a host nothing that has another machine by then.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, type Power } from '../driver.ts';
import type { Controller } from './controller.ts';
import type { DeploymentStore, HostDeployment } from './deployment.ts';
import type { BareMetalHost } from './host.ts';
import { IpmiController } from './ipmi.ts';
import { RedfishController } from './redfish.ts';

export interface Patience {
  /** How long a system may take to turn itself off before its power is cut. */
  graceSeconds: number;
  /** How long a controller may take to do what it has said yes to. */
  powerSeconds: number;
  pollSeconds: number;
}

export const controllerOf = (host: BareMetalHost): Controller =>
  host.bmc.protocol === 'redfish' ? new RedfishController(host) : new IpmiController(host);

/** Whether the SSH server of a machine answers; true where nobody could know. */
export type Proof = (deployment: HostDeployment, signal: AbortSignal) => Promise<boolean>;

/** The same controller, which is told nothing any more once the deployment went on without the caller. */
export function fenced(controller: Controller, store: DeploymentStore, of: HostDeployment): Controller {
  const check = async (signal: AbortSignal) => {
    const now = await store.find({ order: of.orderNumber, generation: of.generation });
    signal.throwIfAborted();
    if (now?.id !== of.id || now.run !== of.run) throw new DriverError('failed', 'Others went on with the machine.');
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
      await controller.bootFrom(device, signal);
    },
  };
}

/**
 * Does what is left of a power cycle: off, then on from the device that comes next. Each half is written when it is done.
 * A host that is found on in the second half was turned on by whoever died before he could write it. A system that was
 * there before phones home no more, so it is left in the second half until its SSH server answers.
 */
export async function carryCycle(
  controller: Controller,
  store: DeploymentStore,
  deployment: HostDeployment,
  { gently = false, proof, ...patience }: Patience & { gently?: boolean; proof: Proof },
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
  if (deployment.state === 'BOOTED' && !(await proof(deployment, signal))) return;
  await store.cycled({ ...deployment, cycle: 'ON' });
}

/** @param gently the system is asked first */
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

/** Who cannot ask systems to turn themselves off cuts the power. */
function ignoreRefusal(error: unknown) {
  if (!(error instanceof DriverError && error.code === 'failed')) throw error;
}

async function reach(controller: Controller, want: Power, seconds: number, patience: Patience, signal: AbortSignal) {
  if (!(await comes(controller, want, seconds, patience, signal)))
    throw new DriverError('failed', `The machine was told to turn ${want}, and did not within ${seconds} seconds.`);
}

async function comes(
  controller: Controller,
  want: Power,
  seconds: number,
  { pollSeconds }: Patience,
  signal: AbortSignal,
): Promise<boolean> {
  for (const end = Date.now() + seconds * 1000; ; await sleep(pollSeconds * 1000, undefined, { signal })) {
    if ((await controller.power(signal)) === want) return true;
    if (Date.now() > end) return false;
  }
}
