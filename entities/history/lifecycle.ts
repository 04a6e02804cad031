/** The states of a row, the moves between them, and the event of each. `transition.ts` moves rows by them. */
import type { EntitySchema } from 'typeorm';
import type { ChangeKind } from '../database/bus.ts';
import type { EventType, ResourceType } from './event.ts';

export interface Lifecycle<T, State extends string> {
  table: EntitySchema<T>;
  /** The property by which callers name a row. */
  key: keyof T & string;
  /** The property that holds the state. */
  state: keyof T & string;
  /** From each state, the states that may follow. */
  transitions: Readonly<Record<State, readonly State[]>>;
  /** The event that a move writes for the account of the row. Absent: none. */
  told?: {
    resource: ResourceType;
    change: ChangeKind;
    /** The event of a move to the state. */
    events: Partial<Readonly<Record<State, EventType>>>;
  };
}

/** A lifecycle whose moves write no event. The caller records the act. */
export type SilentLifecycle<T, State extends string> = Omit<Lifecycle<T, State>, 'told'> & { told?: never };

/** Returns the states from which a row may move to the given one. */
export const statesBefore = <State extends string>(
  { transitions }: Pick<Lifecycle<never, State>, 'transitions'>,
  to: State,
): State[] => (Object.keys(transitions) as State[]).filter((state) => transitions[state].includes(to));
