/**
 * `npm start`. It is JavaScript: for TypeScript, Node would load its compiler before it can read the cache of compiled files.
 * The database would wait for that.
 */
import { join } from 'node:path';

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(
    `Freehold needs Node 24 or newer, and this is ${process.version}. "npm start" uses the Node that npm brings.`,
  );
  process.exit(1);
}
// An older Node lacks these members, and would print a stack trace instead.
const { constants, enableCompileCache } = await import('node:module');
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
