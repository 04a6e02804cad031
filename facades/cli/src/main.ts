#!/usr/bin/env node
/** The program `freehold`. */
import { run } from './program.ts';

// The reader of a pipe may stop earlier, such as head.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
run(process.argv.slice(2)).then((code) => {
  if (code !== undefined) process.exitCode = code;
});
