/** IPMI 2.0 over the network (RMCP+), spoken by `ipmitool`. */
import { execFile } from 'node:child_process';
import { DriverError, ENVIRONMENT, type Power } from '../driver.ts';
import type { Controller, Device } from './controller.ts';
import type { BareMetalHost } from './host.ts';

/** Generous limits: controllers are slow, and lose packets. */
const [RETRIES, RETRY_SECONDS, CALL_SECONDS] = ['3', '2', 20];

export class IpmiController implements Controller {
  readonly #host: BareMetalHost;
  constructor(host: BareMetalHost) {
    this.#host = host;
  }

  async power(signal: AbortSignal): Promise<Power> {
    const said = await this.#chassis(['power', 'status'], signal);
    const [, state] = /Chassis Power is (on|off)/i.exec(said) ?? [];
    if (!state) throw new DriverError('unreachable', `The controller of ${this.#host.name} did not report its power.`);
    return state.toLowerCase() as Power;
  }

  async on(signal: AbortSignal): Promise<void> {
    await this.#chassis(['power', 'on'], signal);
  }

  async off(signal: AbortSignal): Promise<void> {
    await this.#chassis(['power', 'off'], signal);
  }

  async shutDown(signal: AbortSignal): Promise<void> {
    await this.#chassis(['power', 'soft'], signal);
  }

  /** Sets the device right before the start, since controllers forget it after a minute. */
  async bootFrom(device: Device, signal: AbortSignal): Promise<void> {
    const options = this.#host.firmware === 'UEFI' ? ['options=efiboot'] : [];
    await this.#chassis(['bootdev', device === 'PXE' ? 'pxe' : 'disk', ...options], signal);
  }

  /** Passes the password in the environment, since every user of the machine can read arguments. */
  #chassis(what: string[], signal: AbortSignal): Promise<string> {
    const { name, bmc } = this.#host;
    const [, host = '', port = '623'] = /^(.*?)(?::(\d+))?$/.exec(bmc.address) ?? [];
    // Every controller has cipher suite 3. Without it, ipmitool asks for the list, which takes a second.
    const session = ['-I', 'lanplus', '-C', '3', '-H', host, '-p', port, '-U', bmc.user, '-E'];
    const patience = ['-R', RETRIES, '-N', RETRY_SECONDS];
    const env = { ...ENVIRONMENT, IPMI_PASSWORD: bmc.password };
    return new Promise((resolve, reject) => {
      execFile(
        'ipmitool',
        [...session, ...patience, 'chassis', ...what],
        { env, signal, timeout: CALL_SECONDS * 1000, killSignal: 'SIGKILL' },
        (error, stdout, stderr) => {
          if (!error) resolve(stdout);
          else if (signal.aborted) reject(signal.reason);
          else reject(failureOf(name, what.join(' '), error as NodeJS.ErrnoException, stderr));
        },
      );
    });
  }
}

/** Distinguishes a command that the controller refuses from an unreachable controller. */
function failureOf(name: string, what: string, error: NodeJS.ErrnoException, stderr: string): DriverError {
  if (error.code === 'ENOENT') return new DriverError('unreachable', 'ipmitool is not installed.');
  if (/Set Chassis .* failed|Set Boot .* failed|Command not supported/i.test(stderr))
    return new DriverError('failed', `The controller of ${name} refused: chassis ${what}.`);
  return new DriverError('unreachable', `The controller of ${name} is unreachable: chassis ${what}.`);
}
