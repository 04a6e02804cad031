/** The states of a row, the moves between them, and the event of each. `transition.ts` moves rows by them. */
import type { EntitySchema } from 'typeorm';
import type { ChangeKind } from '../database/bus.ts';
import type { ResourceEventType } from './event.ts';

interface States<T, State extends string> {
  table: EntitySchema<T>;
  /** The property by which callers name a row. Moves lock rows in its order, which is that of `lock-order.ts`. */
  key: keyof T & string;
  /** The property that holds the state. */
  state: keyof T & string;
  /** From each state, the states that may follow. */
  transitions: Readonly<Record<State, readonly State[]>>;
}

/** A lifecycle whose moves write no event. The caller records the act of which the move is a part. */
export type Lifecycle<T, State extends string> = States<T, State> & { told?: never };

/** A lifecycle whose moves write an event for the account of the row. */
export type ToldLifecycle<T, State extends string> = States<T, State> & {
  told: {
    change: ChangeKind;
    /** The event of a move to each state. The first word of its type names the resource. */
    events: Readonly<Record<State, ResourceEventType>>;
  };
};

export type AnyLifecycle<T, State extends string> = Lifecycle<T, State> | ToldLifecycle<T, State>;

/** Returns the states from which a row may move to the given one. */
export const statesBefore = <State extends string>(
  { transitions }: Pick<AnyLifecycle<never, State>, 'transitions'>,
  to: State,
): State[] => (Object.keys(transitions) as State[]).filter((state) => transitions[state].includes(to));
