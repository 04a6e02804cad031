/** IPMI 2.0 over the network (RMCP+), spoken by `ipmitool`. */
import { type ExecFileException, execFile } from 'node:child_process';
import { DriverError, ENVIRONMENT, type Power } from '../driver.ts';
import type { BmcUser, Controller, Device } from './controller.ts';
import type { BareMetalHost } from './host.ts';

/** Generous limits: controllers are slow, and lose packets. */
const [RETRIES, RETRY_SECONDS, CALL_SECONDS] = ['3', '2', 20];

/** Suite 17 signs with SHA-256. A controller that refuses it gets 3 (SHA-1), and is asked again after a restart. */
const [SUITE, OLD_SUITE] = ['17', '3'];
/** The addresses of controllers that refused suite 17. */
const old = new Set<string>();

/**
 * Id, name, two flags, whether the user may send commands over the network, and the privilege. A name has 16 bytes, so it
 * can have line breaks, and not a whole row.
 */
const USER = /(\d+),(.{0,16}?),(?:true|false),(?:true|false),(true|false),([^,\n]*)\n/gsy;

export class IpmiController implements Controller {
  readonly #host: BareMetalHost;
  constructor(host: BareMetalHost) {
    this.#host = host;
  }

  async power(signal: AbortSignal): Promise<Power> {
    // Only a verbose answer tells a wrong password from silence.
    const said = await this.#call(['-v', 'chassis', 'power', 'status'], signal);
    const [, state] = /Chassis Power is (on|off)/i.exec(said) ?? [];
    if (!state) throw new DriverError('unreachable', `The controller of ${this.#host.name} did not report its power.`);
    return state.toLowerCase() as Power;
  }

  async on(signal: AbortSignal): Promise<void> {
    await this.#call(['chassis', 'power', 'on'], signal);
  }

  async off(signal: AbortSignal): Promise<void> {
    await this.#call(['chassis', 'power', 'off'], signal);
  }

  async shutDown(signal: AbortSignal): Promise<void> {
    await this.#call(['chassis', 'power', 'soft'], signal);
  }

  /** Sets the device right before the start, since controllers forget it after a minute. */
  async bootFrom(device: Device, signal: AbortSignal): Promise<void> {
    const options = this.#host.firmware === 'UEFI' ? ['options=efiboot'] : [];
    await this.#call(['chassis', 'bootdev', device === 'PXE' ? 'pxe' : 'disk', ...options], signal);
  }

  async hasMedium(): Promise<boolean> {
    return false;
  }

  async users(signal: AbortSignal): Promise<BmcUser[] | undefined> {
    let said: string;
    try {
      said = await this.#call(['-c', 'user', 'list'], signal);
    } catch (error) {
      if (error instanceof DriverError && error.code === 'failed') return undefined;
      throw error;
    }
    return parsedUsers(said, this.#host);
  }

  async disable({ id }: BmcUser, signal: AbortSignal): Promise<void> {
    await this.#call(['user', 'disable', id], signal);
    await this.#call(['user', 'priv', id, '15'], signal); // No access, also if somebody enables it again.
  }

  /** Carries out a command with the better suite, if the controller has it. */
  async #call(what: string[], signal: AbortSignal): Promise<string> {
    const { address } = this.#host.bmc;
    if (old.has(address)) return this.#callWith(OLD_SUITE, what, signal);
    try {
      return await this.#callWith(SUITE, what, signal);
    } catch (error) {
      if (!(error instanceof SuiteRefused)) throw error;
    }
    const said = await this.#callWith(OLD_SUITE, what, signal);
    old.add(address);
    return said;
  }

  /** Passes the password in the environment, since every user of the machine can read arguments. */
  #callWith(suite: string, what: string[], signal: AbortSignal): Promise<string> {
    const { name, bmc } = this.#host;
    const [, host = '', port = '623'] = /^(.*?)(?::(\d+))?$/.exec(bmc.address) ?? [];
    const session = ['-I', 'lanplus', '-C', suite, '-H', host, '-p', port, '-U', bmc.user, '-E'];
    const patience = ['-R', RETRIES, '-N', RETRY_SECONDS];
    const env = { ...ENVIRONMENT, IPMI_PASSWORD: bmc.password };
    return new Promise((resolve, reject) => {
      execFile(
        'ipmitool',
        [...session, ...patience, ...what],
        { env, signal, timeout: CALL_SECONDS * 1000, killSignal: 'SIGKILL' },
        (error, stdout, stderr) => {
          if (!error) resolve(stdout);
          else if (signal.aborted) reject(signal.reason);
          else reject(failureOf(name, what.filter((word) => !word.startsWith('-')).join(' '), error, stderr));
        },
      );
    });
  }
}

/**
 * Parses the whole list. Root on a host chooses names, so an unreadable row must not hide a user. Somebody has logged in, so an
 * empty list is none.
 * @throws DriverError failed
 */
export function parsedUsers(list: string, { name: host, bmc }: Pick<BareMetalHost, 'name' | 'bmc'>) {
  if (!list) return undefined;
  const rows = [...list.matchAll(USER)];
  if (rows.map(([row]) => row).join('') !== list)
    throw new DriverError('failed', `The controller of ${host} has a list of users that does not parse.`);
  return rows
    .filter(([, , , mayLogIn, privilege]) => mayLogIn === 'true' && privilege !== 'NO ACCESS')
    .map(([, id, name, , privilege]): BmcUser => {
      return { id: id!, name: name!, privilege: privilege!, own: name === bmc.user };
    });
}

class SuiteRefused extends DriverError {}
const REFUSED_SUITE = (name: string) => `The controller of ${name} refuses the cipher suite.`;

/** The faults of a session that the operator mends, by the words of ipmitool. */
const SESSION_FAULTS: [RegExp, (name: string) => string][] = [
  [/unauthorized name/i, (name) => `The controller of ${name} does not know the user.`],
  [/HMAC is invalid/i, (name) => `The controller of ${name} refuses the password.`],
  [/Address lookup for .* failed/i, (name) => `The name of the controller of ${name} has no address.`],
];

/** Distinguishes a command that the controller refuses from an unreachable controller. */
function failureOf(name: string, what: string, error: ExecFileException, stderr: string): DriverError {
  if (error.code === 'ENOENT') return new DriverError('unreachable', 'ipmitool is not installed.');
  if (/Error in open session response/i.test(stderr)) return new SuiteRefused('unreachable', REFUSED_SUITE(name));
  if (/(Set (Chassis|Boot|User)|Get User) .* failed|Command not supported|Invalid command/i.test(stderr))
    return new DriverError('failed', `The controller of ${name} refused: ${what}.`);
  const fault = SESSION_FAULTS.find(([words]) => words.test(stderr))?.[1];
  return new DriverError('unreachable', fault?.(name) ?? `The controller of ${name} is unreachable: ${what}.`);
}
