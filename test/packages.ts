/** Preloaded into a process: at its end, it writes the packages that the process loaded to the file LOADED_REPORT. */
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const PACKAGE = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const loaded = new Set<string>();
registerHooks({
  load(url, context, next) {
    const [, name] = PACKAGE.exec(url) ?? [];
    if (name) loaded.add(name);
    return next(url, context);
  },
});
process.on('exit', () => writeFileSync(process.env.LOADED_REPORT!, JSON.stringify([...loaded])));
