/**
 * A dedicated machine on its way onto a host, and off it again: which system it gets, how far it is, and what its host is
 * still to be told. One row for each host that is not free. It is no customer's and tells no customer anything, as tasks do
 * not: what becomes of the server is told by the server's own states.
 */

import {
  bytes,
  columnsOf,
  defaulting,
  entity,
  int,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
} from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

export const DEPLOYMENT_STATES = [
  'WAITING',
  'INSTALLING',
  'INSTALLED',
  'BOOTED',
  'WIPING',
  'WIPED',
  'RETIRED',
] as const;

export const Deployment = entity(
  'deployment',
  {
    id: key(),
    orderNumber: text(),
    generation: int(),
    /** The name of the host. */
    box: text(),
    /** Of the card that boots from the network; lower case, with colons. */
    mac: text(),
    /** The device that the system goes to, such as /dev/nvme0n1. */
    disk: text(),
    state: defaulting(oneOf(...DEPLOYMENT_STATES), "'WAITING'"),
    /** Grows with each system that is installed, and with the wipe: what was given out for another is void. */
    run: defaulting(int(), 1),
    image: text(),
    /** SHA-256 of what was ordered, in hex. */
    specDigest: text(),
    /** Sealed: what the new system is told (host name, keys, user data, root password). Erased when it has booted. */
    seed: nullable(bytes()),
    /** What the host is to boot from next. */
    device: defaulting(oneOf('PXE', 'DISK'), "'PXE'"),
    /** What is left of a power cycle: both halves, or only the second. Null: nothing. */
    cycle: nullable(oneOf('OFF', 'ON')),
    /** The last change that was asked for. */
    change: nullable(text()),
    /** Why the operator took it out of the hands of the driver. */
    note: nullable(text()),
    createdAt: now(),
    updatedAt: now(),
  },
  [
    { name: 'deployment_machine', columns: ['orderNumber', 'generation'], unique: true },
    { name: 'deployment_box', columns: ['box'], unique: true },
    { name: 'deployment_mac', columns: ['mac'], unique: true },
  ],
);
export type Deployment = RowOf<typeof Deployment>;
export type DeploymentState = Deployment['state'];

/**
 * From each state, the states that it can go to. Whatever was once given out is wiped; then the row goes. A host that the
 * operator has retired is out of service with whatever is on it: its row stays, and keeps it from being sold, until the
 * operator says that it is wiped.
 */
export const DEPLOYMENT_TRANSITIONS: Readonly<Record<DeploymentState, readonly DeploymentState[]>> = {
  WAITING: ['WAITING', 'INSTALLING', 'WIPING', 'RETIRED'],
  INSTALLING: ['WAITING', 'INSTALLED', 'WIPING', 'RETIRED'],
  INSTALLED: ['WAITING', 'BOOTED', 'WIPING', 'RETIRED'],
  BOOTED: ['WAITING', 'WIPING', 'RETIRED'],
  WIPING: ['WIPED', 'RETIRED'],
  WIPED: ['RETIRED'],
  RETIRED: [],
};

/**
 * Moves it to another state, if the table allows it from the one it is in, and nobody has begun another run meanwhile.
 * @returns the row after the move, or undefined where nothing was moved
 */
export async function moveDeployment(
  db: Queryable,
  { id, run }: Pick<Deployment, 'id' | 'run'>,
  to: DeploymentState,
  set: Partial<Deployment> = {},
): Promise<Deployment | undefined> {
  const from = (Object.keys(DEPLOYMENT_TRANSITIONS) as DeploymentState[]).filter((state) =>
    DEPLOYMENT_TRANSITIONS[state].includes(to),
  );
  const columns = Deployment.options.columns as Record<string, { name: string } | undefined>;
  const assigned = Object.keys(set).map((property, i) => `, ${columns[property]!.name} = $${5 + i}`);
  const [moved] = await db.query<Deployment>(
    `update deployment set state = $4, updated_at = now()${assigned.join('')}
    where id = $1 and run = $2 and state = any($3) returning ${columnsOf(Deployment)}`,
    [id, run, from, to, ...Object.values(set)],
  );
  return moved;
}
