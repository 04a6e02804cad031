/** The progress of a wait, on the standard error output. A terminal gets one line that changes, a file a line for each change. */
import { harmless, say } from './terminal.ts';

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const FRAME_MS = 100;

export class Progress {
  readonly #begun = Date.now();
  readonly #isTerminal = Boolean(process.stderr.isTTY) && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  readonly #timer: NodeJS.Timeout | undefined;
  #text: string;
  #frame = 0;

  constructor(text: string) {
    this.#text = text;
    if (this.#isTerminal) this.#timer = setInterval(() => this.#draw(), FRAME_MS);
    else say(text);
  }

  say(text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    if (!this.#isTerminal) say(text);
  }

  /** Ends the progress with a last line. */
  end(text: string): void {
    clearInterval(this.#timer);
    if (this.#isTerminal) process.stderr.write('\r\x1b[K');
    say(`${text} (${this.#seconds()} s)`);
  }

  #seconds = () => Math.round((Date.now() - this.#begun) / 1000);

  #draw(): void {
    const frame = FRAMES[this.#frame++ % FRAMES.length];
    process.stderr.write(`\r\x1b[K${frame} ${harmless(this.#text)} (${this.#seconds()} s)`);
  }
}
