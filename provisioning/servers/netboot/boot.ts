/**
 * Answers machines in the provisioning network, from the rows of deployments, so every process can answer. The MAC address
 * identifies a machine until it has its token, which belongs to one deployment, run and stage. Tokens are derived, and never
 * stored. A used token, or one of an earlier run, opens nothing.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Database } from '../../../entities/database/database.ts';
import { find } from '../../../entities/database/table.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { isId } from '../../../entities/ids.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { Deployment, type DeploymentState, moveDeployment, SEED } from '../../../entities/servers/deployment.ts';
import { signalTask } from '../../../entities/tasks/start.ts';
import { metaData, networkConfig, type Seed, userData, vendorData } from './seed.ts';

type Stage = 'install' | 'system' | 'wipe';
/** The reports of a machine: the stage of its token, and the move of the deployment. */
const NEWS = {
  installed: { stage: 'install', from: 'INSTALLING', to: 'INSTALLED', set: { device: 'DISK', cycle: 'OFF' } },
  booted: { stage: 'system', from: 'INSTALLED', to: 'BOOTED', set: { seed: null } },
  wiped: { stage: 'wipe', from: 'WIPING', to: 'WIPED', set: {} },
} as const satisfies Record<
  string,
  { stage: Stage; from: DeploymentState; to: DeploymentState; set: Partial<Deployment> }
>;
export type News = keyof typeof NEWS;
export const isNews = (text: string): text is News => Object.hasOwn(NEWS, text);

const SEED_FILES = ['meta-data', 'user-data', 'vendor-data', 'network-config'] as const;
export type SeedFile = (typeof SEED_FILES)[number];
export const isSeedFile = (text: string): text is SeedFile => (SEED_FILES as readonly string[]).includes(text);

/** The job of a machine that boots from the network. */
export interface Job {
  what: 'install' | 'wipe';
  /** The path of its deployment, with the token. */
  path: string;
  disk: string;
  image: string;
}

export class Netboot {
  readonly #db: Database;
  readonly #vault: Vault;
  /** The current key makes tokens. Machines may still have tokens of previous ones. */
  readonly #keys: Buffer[];
  constructor(db: Database, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
    this.#keys = vault.deriveAll('netboot');
  }

  /** The job of the machine with that MAC address. Undefined: none, it boots from its disk. */
  async job(mac: string): Promise<Job | undefined> {
    const found = await find(this.#db, Deployment, { mac });
    if (!found) return undefined;
    const { state, disk, image } = found;
    if (state === 'WIPING') return { what: 'wipe', path: this.#path(found, 'wipe'), disk, image };
    if (state !== 'WAITING' && state !== 'INSTALLING') return undefined;
    if (state === 'WAITING' && !(await moveDeployment(this.#db, found, 'INSTALLING'))) return undefined;
    return { what: 'install', path: this.#path(found, 'install'), disk, image };
  }

  /** A file of the seed, for the installer. @param base the URL of this listener, as the machine reaches it */
  async seed(id: string, token: string, file: SeedFile, base: string): Promise<string | undefined> {
    const found = await this.#find(this.#db, id);
    if (found?.state !== 'INSTALLING' || !found.seed || !this.#opens(token, found, 'install')) return undefined;
    const seed = JSON.parse(SEED.open(this.#vault, found.seed, id)) as Seed;
    if (file === 'meta-data') return metaData(seed, `${id}-${found.run}`);
    if (file === 'user-data') return userData(seed);
    if (file === 'vendor-data') return vendorData(seed, `${base}${this.#path(found, 'system')}/booted`);
    return networkConfig(seed, found.mac);
  }

  /** Takes the report of a machine. A repeated report changes nothing. @returns whether the token belongs to that machine */
  tell(id: string, token: string, news: News): Promise<boolean> {
    const { stage, from, to, set } = NEWS[news];
    return this.#db.transaction(async (tx) => {
      const found = await this.#find(tx, id);
      if (!found || !this.#opens(token, found, stage)) return false;
      if (found.state !== from) return found.state === to;
      if (await moveDeployment(tx, found, to, set)) await signalTask(tx, found.orderNumber);
      return true;
    });
  }

  async #find(db: Queryable, id: string): Promise<Deployment | undefined> {
    return isId('dep', id) ? find(db, Deployment, { id }) : undefined;
  }

  #path(found: Deployment, stage: Stage) {
    return `/d/${found.id}/${this.#tokens(found, stage)[0]!.toString('base64url')}`;
  }

  #tokens({ id, run }: Deployment, stage: Stage): Buffer[] {
    return this.#keys.map((key) => createHmac('sha256', key).update(`${id}:${run}:${stage}`).digest());
  }

  #opens(token: string, found: Deployment, stage: Stage): boolean {
    const given = Buffer.from(token, 'base64url');
    return this.#tokens(found, stage).some((right) => given.length === right.length && timingSafeEqual(given, right));
  }
}
