/** A step of a server's process, and what it works with. */
import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { Server } from '../../../entities/servers/server.ts';
import type { LeasedTask, Outcome } from '../../tasks/tasks.ts';
import type { HardwareDriver, MachineSpec } from '../drivers/driver.ts';

/** What a step works with. */
export interface Work {
  db: Database;
  server: Server;
  driver: HardwareDriver;
  /** How long to wait before a machine is looked at again. */
  pollSeconds: number;
  /** How long a machine has to give proof, before something else is tried. */
  proofSeconds: number;
  specOf(server: Server): Promise<MachineSpec>;
}
export type ServerStep = (task: LeasedTask, work: Work) => Promise<Outcome>;

export async function findServer(db: Queryable, orderNumber: string): Promise<Server | undefined> {
  const [server] = await db.query<Server>(`select ${columnsOf(Server)} from server where order_number = $1`, [
    orderNumber,
  ]);
  return server;
}
