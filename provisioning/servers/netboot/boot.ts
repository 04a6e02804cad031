/**
 * Answers machines in the provisioning network, from the rows of deployments, so every process can answer. A machine gets its
 * job by an unguessable address. Its controller knows that address, or the script for its MAC address names it. Only isolated
 * networks get that script, since everybody there can ask for it.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { isId } from '../../../entities/ids.ts';
import type { Vault } from '../../../entities/secrets.ts';
import {
  type BootingDeployment,
  type Deployment,
  type DeploymentState,
  FIND_BOOTING,
  moveDeployment,
  NOTE_REPORT,
} from '../../../entities/servers/deployment.ts';
import { signalTask } from '../../../entities/tasks/start.ts';
import type { Job } from './job.ts';
import { jobPath, opens, signs } from './tokens.ts';

/** The reports of a machine that move its deployment. */
const MOVES = {
  installed: { from: 'INSTALLING', to: 'INSTALLED', set: { device: 'DISK', cycle: 'OFF', seed: null } },
  booted: { from: 'INSTALLED', to: 'BOOTED', set: {} },
  wiped: { from: 'WIPING', to: 'WIPED', set: {} },
} as const satisfies Record<string, { from: DeploymentState; to: DeploymentState; set: Partial<Deployment> }>;
/** The others: the installer or the wiper makes progress, or cannot go on. */
const NOTES = ['working', 'failed'] as const;
export type News = keyof typeof MOVES | (typeof NOTES)[number];
export const isNews = (text: string): text is News =>
  Object.hasOwn(MOVES, text) || (NOTES as readonly string[]).includes(text);

export class Netboot {
  readonly #db: Database;
  readonly vault: Vault;
  constructor(db: Database, vault: Vault) {
    this.#db = db;
    this.vault = vault;
  }

  /**
   * The job of the machine with that MAC address, and its path. Undefined: none, or not over the network. The machine boots
   * from its disk.
   */
  async byMac(mac: string): Promise<(Job & { path: string }) | undefined> {
    const [found] = await FIND_BOOTING.all(this.#db, [mac, null]);
    const job = found?.isolated ? jobOf(found) : undefined;
    return job && { ...job, path: jobPath(this.vault, job.found) };
  }

  /** The job of a deployment, for the holder of its token. */
  async byToken(id: string, token: string): Promise<Job | undefined> {
    const found = await this.#find(this.#db, id);
    return found && opens(this.vault, token, found, 'job') ? jobOf(found) : undefined;
  }

  /** Notes that the machine gets its job, so from now on its system may be on the disks. False: the job is over. */
  async begin({ found }: Job): Promise<boolean> {
    if (found.state !== 'WAITING' || (await moveDeployment(this.#db, found, 'INSTALLING'))) return true;
    const now = await this.#find(this.#db, found.id);
    return now?.run === found.run && now.state === 'INSTALLING'; // Another request of the machine was faster.
  }

  /**
   * Takes the report of a machine. A repeated report changes nothing.
   * @param proof the signature of an installer or a wiper, or the token of a new system
   * @returns whether it is from that machine, and complete
   */
  async tell(id: string, proof: string, news: News, text: string): Promise<boolean> {
    const proven = async (db: Queryable): Promise<BootingDeployment | undefined> => {
      const found = await this.#find(db, id);
      if (!found) return undefined;
      const isReal =
        news === 'booted'
          ? opens(this.vault, proof, found, 'system')
          : signs(this.vault, proof, found, `${news}\n${text}`);
      return isReal ? found : undefined;
    };
    // A forged report costs no transaction.
    if (!(await proven(this.#db))) return false;
    return this.#db.transaction(async (tx) => {
      const found = await proven(tx);
      if (!found) return false;
      if (news === 'working' || news === 'failed') {
        await NOTE_REPORT.all(tx, [id, found.run, shown(text), news === 'working']);
        return true;
      }
      const { from, to, set } = MOVES[news];
      if (found.state !== from) return found.state === to;
      const left = news === 'wiped' ? unverified(found, text) : [];
      if (left.length) {
        await NOTE_REPORT.all(tx, [id, found.run, `The wiper did not verify: ${left.join(', ')}.`, false]);
        return false;
      }
      if (await moveDeployment(tx, found, to, { ...set, ...(news !== 'booted' && { report: shown(text) }) }))
        await signalTask(tx, found.orderNumber);
      return true;
    });
  }

  async #find(db: Queryable, id: string): Promise<BootingDeployment | undefined> {
    return isId('dep', id) ? FIND_BOOTING.first(db, [null, id]) : undefined;
  }
}

/** A report without control characters, which could confuse a terminal. */
const shown = (text: string) => text.replace(/(?!\n)\p{Cc}/gu, '');

/** Until the power is cut, the earlier system still runs, and could pose as the installer or the wiper. */
function jobOf(found: BootingDeployment): Job | undefined {
  if (!found.disks?.length || found.cycle === 'OFF') return undefined;
  if (found.state === 'WIPING') return { what: 'wipe', found };
  return found.state === 'WAITING' || found.state === 'INSTALLING' ? { what: 'install', found } : undefined;
}

/** The disks of the host that the report of its wiper lacks. Each line of it begins with the name of a verified disk. */
function unverified({ disks }: BootingDeployment, report: string): string[] {
  const verified = new Set(report.split('\n').map((line) => line.split(' ')[0]));
  return disks?.length ? disks.filter((disk) => !verified.has(disk)) : ['the disks, which are unknown'];
}
