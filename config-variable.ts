/** The description of an environment variable, for reading it and for its documentation. */
import type { Kind } from './config-kind.ts';

/** An environment variable with the type of its value. */
export interface Variable<T> {
  kind: Kind<T>;
  /** The text that an unset variable stands for. */
  preset?: string;
  /** The default as the documentation prints it. */
  printed: string;
  description: string;
  /** Whether it can also come from a file, which the variable with the ending `_FILE` names. */
  secret?: boolean;
}
/** Makes a variable with a default. */
export const variable = <T>(kind: Kind<T>, preset: string, description: string): Variable<T> => ({
  kind,
  preset,
  printed: preset ? `\`${preset}\`` : 'none',
  description,
});
/** Makes a variable that is undefined when unset. */
export const optional = <T>(kind: Kind<T>, printed: string, description: string): Variable<T | undefined> => ({
  kind,
  printed,
  description,
});

/** Lets a variable come from a file, too. */
export const secret = <T>(variable: Variable<T>): Variable<T> => ({ ...variable, secret: true });
