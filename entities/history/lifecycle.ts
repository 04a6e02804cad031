/** The states that a row can be in, the moves between them, and the event that tells of each. */
import type { EntitySchema } from 'typeorm';
import type { ChangeKind } from '../database/bus.ts';
import type { EventType, ResourceType } from './event.ts';

export interface Lifecycle<Row, Status extends string> {
  entity: EntitySchema<Row>;
  resource: ResourceType;
  change: ChangeKind;
  /** From each state, the states it can go to. */
  transitions: Readonly<Record<Status, readonly Status[]>>;
  /** The event that tells of arriving in a state. */
  events: Readonly<Record<Status, EventType>>;
}
