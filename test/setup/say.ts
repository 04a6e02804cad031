/** Prints a line for readers of a passing test: the reason of a skip, or a figure. */
export const say = (line: string): unknown => process.stdout.write(`${line}\n`);
