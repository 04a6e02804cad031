/** Collects the time of each answer, and all unexpected answers. */

export type Arguments = Record<string, unknown>;

export interface Reply {
  /** `ok`, or the code of the error. */
  code: string;
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows what it looks like
  body: any;
}

/** The code of an answer that never came, or that the client could not read. */
export const NO_ANSWER = 'no_answer';

export interface Answer {
  name: string;
  /** The call was meant to wait. */
  waits: boolean;
  ms: number;
  /** `ok`, or the code of the error. */
  code: string;
}

export class Measurements {
  readonly answers: (Answer & { at: Date })[] = [];
  /** Answers that report an internal error, and answers that never came. */
  readonly broken: string[] = [];
  /** Other unexpected answers, and answers that contradict one another. */
  readonly surprises: string[] = [];

  answered(answer: Answer): void {
    this.answers.push({ ...answer, at: new Date() });
  }

  surprise(name: string, args: Arguments, { code, body }: Reply): void {
    const list = BROKEN.has(code) ? this.broken : this.surprises;
    list.push(`${new Date().toISOString()} ${name} answered ${code}: ${short(body)} to ${short(args)}`);
  }

  contradiction(sentence: string): void {
    this.surprises.push(`${new Date().toISOString()} ${sentence}`);
  }
}

const BROKEN: ReadonlySet<string> = new Set(['internal_error', 'unavailable', NO_ANSWER]);

const short = (value: unknown): string => JSON.stringify(value).slice(0, 400);
