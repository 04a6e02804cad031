/**
 * `npm start`. It is JavaScript: for TypeScript, Node would load its compiler before it can read the cache of compiled files.
 * The database would wait for that.
 */
import { constants, enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

const { FAILED } = constants.compileCacheStatus;
const [beside, within] = [
  join(import.meta.dirname, 'node_modules/.cache/node'),
  join(process.env.DATA_DIR || 'data', 'cache'),
];
// Compilation is half of the load time. The folder of the program may belong to another user.
if (enableCompileCache(beside).status === FAILED) enableCompileCache(within);
// Nearly all that the start makes stays, so a larger nursery only costs memory: 35 MB that V8 never gives back. Requests may need one.
setFlagsFromString('--semi-space-growth-factor=1');
await import('./start.ts');
setFlagsFromString('--semi-space-growth-factor=2');
