/** Deployments as rows of the database. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import type { Vault } from '../../../entities/secrets.ts';
import {
  type AddressedDeployment,
  BEGIN_DEPLOYMENT,
  FIND_DEPLOYMENT,
  LIST_DEPLOYMENTS,
  moveDeployment,
  NOTE_POWER_CYCLE,
  PLAN_POWER_CYCLE,
  RELEASE_DEPLOYMENT,
  RESTART_WIPER,
  SEED,
} from '../../../entities/servers/deployment.ts';
import type { DeploymentStore, HostDeployment, PowerPlan } from '../drivers/bmc/deployment.ts';
import type { BareMetalHost } from '../drivers/bmc/host.ts';
import { DriverError, type MachineKey, type MachineSpec } from '../drivers/driver.ts';
import type { Seed } from './seed.ts';
import { jobPath } from './tokens.ts';

const LIST_MAX = 10_000;

/** The store of the driver for dedicated servers. A seed stays sealed until its system is on the disk. */
export class Deployments implements DeploymentStore {
  readonly #db: Queryable;
  readonly #vault: Vault;
  readonly #url: string | undefined;
  /** @param url of the listener for machines, as controllers reach it. Absent: no virtual media */
  constructor(db: Queryable, vault: Vault, url?: string) {
    this.#db = db;
    this.#vault = vault;
    this.#url = url;
  }

  find({ order, generation }: MachineKey): Promise<AddressedDeployment | undefined> {
    return FIND_DEPLOYMENT.first(this.#db, [order, generation]);
  }

  list(): Promise<AddressedDeployment[]> {
    return LIST_DEPLOYMENTS.all(this.#db, [LIST_MAX]);
  }

  async begin(
    spec: MachineSpec,
    specDigest: string,
    { name, mac }: BareMetalHost,
    bmcUsers: string[] | null,
  ): Promise<AddressedDeployment | undefined> {
    const { order, generation, image } = spec;
    const id = newId('dep');
    const target = [name, mac.toLowerCase(), image];
    const given = [id, order, generation, ...target, specDigest, this.#sealed(id, spec), bmcUsers];
    return (await BEGIN_DEPLOYMENT.first(this.#db, given)) ?? this.find(spec);
  }

  async renew(of: HostDeployment, spec: MachineSpec, specDigest: string, change: string): Promise<void> {
    const set = { image: spec.image, specDigest, seed: this.#sealed(of.id, spec), change, report: null };
    await moveDeployment(this.#db, of, 'WAITING', { ...set, run: of.run + 1, device: 'PXE', cycle: 'OFF' });
  }

  async wipe(of: HostDeployment): Promise<void> {
    const set = { run: of.run + 1, seed: null, report: null, restarts: 0 };
    await moveDeployment(this.#db, of, 'WIPING', { ...set, device: 'PXE', cycle: 'OFF' });
  }

  async restartWiper(of: HostDeployment): Promise<void> {
    await RESTART_WIPER.all(this.#db, [of.id, of.run]);
  }

  mediumOf(of: HostDeployment): string {
    if (!this.#url) throw new DriverError('failed', 'Set PROVISIONING_URL, from which controllers load virtual media.');
    return `${this.#url}${jobPath(this.#vault, of)}/boot.iso`;
  }

  async plan(of: HostDeployment, { device, cycle, change }: PowerPlan): Promise<void> {
    await PLAN_POWER_CYCLE.all(this.#db, [of.id, of.run, device, cycle, change ?? null]);
  }

  async cycled(of: HostDeployment): Promise<void> {
    await NOTE_POWER_CYCLE.all(this.#db, [of.id, of.run, of.cycle, of.device]);
  }

  async release(of: HostDeployment): Promise<void> {
    await RELEASE_DEPLOYMENT.all(this.#db, [of.id, of.run]);
  }

  #sealed(id: string, { hostname, sshPublicKeys, rootPassword, userData, network }: MachineSpec): Buffer {
    const seed: Seed = { hostname, sshPublicKeys, rootPassword, userData, network };
    return SEED.seal(this.#vault, JSON.stringify(seed), id);
  }
}
