/**
 * What machines in the provisioning network get and tell, over the rows of deployments: any process can answer. A machine
 * is known by the MAC of its card until it has its token, which is of one deployment, one run and one stage. Tokens are
 * derived and kept nowhere; one that has been used, or whose run is over, opens nothing.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { isId } from '../../../entities/ids.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { Deployment, type DeploymentState, moveDeployment } from '../../../entities/servers/deployment.ts';
import { signalTask } from '../../tasks/tasks.ts';
import { metaData, networkConfig, type Seed, seedContext, userData, vendorData } from './seed.ts';

type Stage = 'install' | 'system' | 'wipe';
/** What a machine tells: who may, from which state, and to which it leads. */
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

/** What a machine is to do that boots from the network. */
export interface Job {
  what: 'install' | 'wipe';
  /** Where its deployment is; the token is in it. */
  path: string;
  disk: string;
  image: string;
}

export class Netboot {
  readonly #db: Database;
  readonly #vault: Vault;
  readonly #key: Buffer;
  constructor(db: Database, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
    this.#key = vault.derive('netboot');
  }

  /** Undefined: nothing, it is to go on with its disk. */
  async job(mac: string): Promise<Job | undefined> {
    const [found] = await this.#db.query<Deployment>(`${SELECT} where mac = $1`, [mac]);
    if (!found) return undefined;
    const { state, disk, image } = found;
    if (state === 'WIPING') return { what: 'wipe', path: this.#path(found, 'wipe'), disk, image };
    if (state !== 'WAITING' && state !== 'INSTALLING') return undefined;
    if (state === 'WAITING' && !(await moveDeployment(this.#db, found, 'INSTALLING'))) return undefined;
    return { what: 'install', path: this.#path(found, 'install'), disk, image };
  }

  /** A file of the seed, for the installer. @param base the URL under which the machine reaches us */
  async seed(id: string, token: string, file: SeedFile, base: string): Promise<string | undefined> {
    const found = await this.#find(this.#db, id);
    if (found?.state !== 'INSTALLING' || !found.seed || !this.#opens(token, found, 'install')) return undefined;
    const seed = JSON.parse(this.#vault.open(found.seed, seedContext(id))) as Seed;
    if (file === 'meta-data') return metaData(seed, `${id}-${found.run}`);
    if (file === 'user-data') return userData(seed);
    if (file === 'vendor-data') return vendorData(seed, `${base}${this.#path(found, 'system')}/booted`);
    return networkConfig(seed, found.mac);
  }

  /** A machine phones home. Told twice, it changes nothing. @returns whether the token is that machine's */
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
    if (!isId('dep', id)) return undefined;
    const [found] = await db.query<Deployment>(`${SELECT} where id = $1`, [id]);
    return found;
  }

  #path(found: Deployment, stage: Stage) {
    return `/d/${found.id}/${this.#token(found, stage).toString('base64url')}`;
  }

  #token({ id, run }: Deployment, stage: Stage): Buffer {
    return createHmac('sha256', this.#key).update(`${id}:${run}:${stage}`).digest();
  }

  #opens(token: string, found: Deployment, stage: Stage): boolean {
    const given = Buffer.from(token, 'base64url');
    const right = this.#token(found, stage);
    return given.length === right.length && timingSafeEqual(given, right);
  }
}

const SELECT = `select ${columnsOf(Deployment)} from deployment`;
