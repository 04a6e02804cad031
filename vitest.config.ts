import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/setup/postgres.ts',
    // Watches the locks of every transaction, and fails the run at a lock out of order.
    setupFiles: ['test/setup/lock-order.ts', 'test/setup/each-file.ts'],
    // Node itself strips the types: the tests run the same files as production, and load graphql only once.
    experimental: { viteModuleRunner: false },
    pool: 'forks',
    // Files share a process and its modules: loading them again for each file took two fifths of the time.
    isolate: false,
    // The processes that tests start share a compile cache; the tests start some hundred of them.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'node'),
      // Every line of a spawned service is read.
      LOG_REPORT: join(tmpdir(), `freehold-log-${process.pid}`),
      LOCK_REPORT: join(tmpdir(), `freehold-locks-${process.pid}`),
    },
    // The output of passed tests would hide the output of failed ones.
    silent: 'passed-only',
    // Tests mostly wait, so more workers than processors pay off.
    maxWorkers: 3,
    // Test machines are busy, and some are four times as slow as others. Tests wait for moments; the limits only end hung ones.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 240_000, interval: 20 } },
  },
});
