/** Questions to the person at the terminal. They go to the standard error output, so results stay clean. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { UsageError } from './failure.ts';
import { isInteractive } from './session.ts';
import { harmless } from './terminal.ts';

/**
 * Asks for a line.
 * @param flag the option that a script would use instead
 * @throws UsageError without a terminal
 */
export function ask(question: string, flag: string, { isSecret = false } = {}): Promise<string> {
  if (!isInteractive()) throw new UsageError(`There is no terminal to ask at. Use ${flag}.`);
  let isMuted = false;
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      if (!isMuted) process.stderr.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  return new Promise((resolve, reject) => {
    lines.on('SIGINT', () => {
      lines.close();
      reject(new UsageError('Nothing was done.'));
    });
    lines.question(harmless(question), (answer) => {
      lines.close();
      if (isSecret) process.stderr.write('\n');
      resolve(answer.trim());
    });
    isMuted = isSecret;
  });
}

/** Reads all of the standard input, without the last line end. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks)
    .toString()
    .replace(/\r?\n$/, '');
}

/** Lets the person type the name of a thing before it goes. @throws UsageError with another answer, or without a terminal */
export async function confirmByName(name: string, consequence: string): Promise<void> {
  const answer = await ask(`${consequence}\nType ${name} to confirm: `, '--force');
  if (answer !== name) throw new UsageError('The name is another one. Nothing was done.');
}
