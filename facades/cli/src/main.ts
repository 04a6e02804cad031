#!/usr/bin/env node
/** The program `freehold`. */
import { run } from './program.ts';

run(process.argv.slice(2)).then((code) => {
  if (code !== undefined) process.exitCode = code;
});
