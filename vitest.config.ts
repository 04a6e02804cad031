import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/setup/postgres.ts',
    // Listens to the locks of every transaction; what it reports fails the run.
    setupFiles: 'test/setup/lock-order.ts',
    // Node itself strips the types, so the tests run the very files that production runs,
    // and graphql is loaded once.
    experimental: { viteModuleRunner: false },
    pool: 'forks',
    // Files share a process and its modules: loading them anew for each file took two fifths of the time.
    isolate: false,
    // What tests start as processes of their own is compiled once, and not at each of some hundred starts.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'node'),
      LOCK_REPORT: join(tmpdir(), `freehold-locks-${process.pid}`),
    },
    // What a test that passed has said hides what another fails with.
    silent: 'passed-only',
    // Tests wait more than they compute.
    maxWorkers: 4,
    // They say nothing about behaviour: machines of tests are busy.
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
