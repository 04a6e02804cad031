/** What came of all that was asked: how long each answer took, and which answers nobody expected. */
import type { Arguments, Reply } from './door.ts';

/** The code of an answer that never came, or that nobody could read. */
export const NO_ANSWER = 'no_answer';

export interface Answer {
  name: string;
  /** It waited for something, as it was told to. */
  waits: boolean;
  ms: number;
  /** `ok`, or the code of the error. */
  code: string;
}

export class Measurements {
  readonly answers: (Answer & { at: Date })[] = [];
  /** Answers that say that something broke, and answers that never came. */
  readonly broken: string[] = [];
  /** Other answers that were not expected, or that contradict one another. */
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
