import { defineConfig } from 'vitest/config';
import shared from '../../../vitest.config.ts';

export default defineConfig({
  test: { ...shared.test, include: ['test/engine/metal/*.metal.ts'], fileParallelism: false },
});
