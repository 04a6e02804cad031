/**
 * `npm start`. It is JavaScript: for TypeScript, Node would load its compiler before it can read the cache of compiled files.
 * The database would wait for that.
 */
import { constants, enableCompileCache } from 'node:module';
import { join } from 'node:path';

const { FAILED } = constants.compileCacheStatus;
const [beside, within] = [
  join(import.meta.dirname, 'node_modules/.cache/node'),
  join(process.env.DATA_DIR || 'data', 'cache'),
];
// Compilation is half of the load time. The folder of the program may belong to another user.
if (enableCompileCache(beside).status === FAILED) enableCompileCache(within);
// An import of node:http would ask for these members. Each loads Node's client for fetch and WebSocket: 35 ms and 17 MB.
const http = process.getBuiltinModule('node:http');
for (const member of ['WebSocket', 'CloseEvent', 'MessageEvent']) delete http[member];
await import('./start.ts');
