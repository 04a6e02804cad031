import { defineConfig } from 'vitest/config';
import shared from '../../vitest.config.ts';

export default defineConfig({
  test: { ...shared.test, include: ['test/payments/**/*.chain.ts'], fileParallelism: false },
});
