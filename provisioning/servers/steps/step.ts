/** A step of a server's process, and its context. */
import type { Database } from '../../../entities/database/database.ts';
import type { Server } from '../../../entities/servers/server.ts';
import type { LeasedTask, Outcome } from '../../tasks/tasks.ts';
import type { HardwareDriver, MachineSpec } from '../drivers/driver.ts';
import type { Relocation } from '../placement/relocation.ts';

/** The context of a step. */
export interface Work {
  db: Database;
  server: Server;
  driver: HardwareDriver;
  /** The move of its machine to another host; undefined if there is none, or the server changes. */
  relocation?: Relocation | undefined;
  /** Whether the worker leaves all machines of the engine alone, because the operator has restored the database. */
  isEngineStopped: boolean;
  /** Seconds until the worker observes a machine again. */
  pollSeconds: number;
  /** Seconds that a machine has to give proof before the worker tries to recover it. */
  proofSeconds: number;
  /** Takes a line about a failed call. */
  log(line: string): void;
  specOf(server: Server): Promise<MachineSpec>;
}
export type ServerStep = (task: LeasedTask, work: Work) => Promise<Outcome>;
