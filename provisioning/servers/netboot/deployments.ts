/** Deployments as rows: the store of the driver for dedicated servers. What a new system is told is sealed until it has booted. */

import { columnsOf } from '../../../entities/database/table.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { Deployment, moveDeployment } from '../../../entities/servers/deployment.ts';
import type { DeploymentStore, HostDeployment, PowerPlan } from '../drivers/bmc/deployment.ts';
import type { BareMetalHost } from '../drivers/bmc/host.ts';
import type { MachineKey, MachineSpec } from '../drivers/driver.ts';
import { type Seed, seedContext } from './seed.ts';

/** A machine has the address that it was told if that has a gateway (see seed.ts). */
const COLUMNS = `${columnsOf(Deployment)}, (select host(address) from address
  where held_by = deployment.order_number and family = 'IPV4' and gateway is not null) as address`;
type Row = Deployment & Pick<HostDeployment, 'address'>;
const LIST_MAX = 10_000;

export class Deployments implements DeploymentStore {
  readonly #db: Queryable;
  readonly #vault: Vault;
  constructor(db: Queryable, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
  }

  async find({ order, generation }: MachineKey): Promise<Row | undefined> {
    const [found] = await this.#db.query<Row>(
      `select ${COLUMNS} from deployment where order_number = $1 and generation = $2`,
      [order, generation],
    );
    return found;
  }

  list(): Promise<Row[]> {
    return this.#db.query(`select ${COLUMNS} from deployment order by id limit ${LIST_MAX}`);
  }

  async begin(spec: MachineSpec, specDigest: string, host: BareMetalHost): Promise<Row | undefined> {
    const id = newId('dep');
    const [begun] = await this.#db.query<Row>(
      `insert into deployment (id, order_number, generation, box, mac, disk, image, spec_digest, seed, cycle)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'OFF') on conflict do nothing returning ${COLUMNS}`,
      [
        id,
        spec.order,
        spec.generation,
        host.name,
        host.mac.toLowerCase(),
        host.disk,
        spec.image,
        specDigest,
        this.#sealed(id, spec),
      ],
    );
    return begun ?? this.find(spec);
  }

  async renew(of: HostDeployment, spec: MachineSpec, specDigest: string, change: string): Promise<void> {
    const set = { image: spec.image, specDigest, seed: this.#sealed(of.id, spec), change };
    await moveDeployment(this.#db, of, 'WAITING', { ...set, run: of.run + 1, device: 'PXE', cycle: 'OFF' });
  }

  async wipe(of: HostDeployment): Promise<void> {
    await moveDeployment(this.#db, of, 'WIPING', { run: of.run + 1, seed: null, device: 'PXE', cycle: 'OFF' });
  }

  async plan(of: HostDeployment, { device, cycle, change }: PowerPlan): Promise<void> {
    await this.#db.query(
      `update deployment set device = $3, cycle = $4, change = coalesce($5, change), updated_at = now()
      where id = $1 and run = $2`,
      [of.id, of.run, device, cycle, change ?? null],
    );
  }

  /** Of a system that was installed meanwhile, the cycle to its disk is another one and stays. */
  async cycled(of: HostDeployment): Promise<void> {
    await this.#db.query(
      `update deployment set cycle = case cycle when 'OFF' then 'ON' end, updated_at = now()
      where id = $1 and run = $2 and cycle = $3 and device = $4`,
      [of.id, of.run, of.cycle, of.device],
    );
  }

  async release(of: HostDeployment): Promise<void> {
    await this.#db.query(
      `delete from deployment where id = $1 and run = $2 and (state = 'WIPED' or (state = 'WAITING' and run = 1))`,
      [of.id, of.run],
    );
  }

  #sealed(id: string, { hostname, sshPublicKeys, rootPassword, userData, network }: MachineSpec): Buffer {
    const seed: Seed = { hostname, sshPublicKeys, rootPassword, userData, network };
    return this.#vault.seal(JSON.stringify(seed), seedContext(id));
  }
}
