/**
 * Preloaded into a process: at its end, it writes the packages that the process loaded to the file LOADED_REPORT. It adds the
 * bytes of V8's nursery.
 */
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { getHeapSpaceStatistics } from 'node:v8';

const PACKAGE = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const loaded = new Set<string>();
registerHooks({
  load(url, context, next) {
    const [, name] = PACKAGE.exec(url) ?? [];
    if (name) loaded.add(name);
    return next(url, context);
  },
});
process.on('exit', () => {
  const nursery = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')!.space_size;
  writeFileSync(process.env.LOADED_REPORT!, JSON.stringify({ loaded: [...loaded], nursery }));
});
