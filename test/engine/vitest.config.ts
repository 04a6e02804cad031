import { defineConfig } from 'vitest/config';
import shared from '../../vitest.config.ts';

export default defineConfig({
  test: {
    ...shared.test,
    include: ['test/engine/**/*.engine.ts'],
    exclude: [
      ...(process.env.INCUS_ROOT ? [] : ['test/engine/incus.engine.ts']),
      ...(process.env.VM_IMAGE ? [] : ['test/engine/vm/*.engine.ts']),
      ...(process.env.DEBIAN_IMAGE ? [] : ['test/engine/debian.engine.ts']),
      ...(process.env.OCI_IMAGE ? [] : ['test/engine/oci.engine.ts']),
      ...(process.env.DEBIAN_IMAGE && process.env.DEBIAN_PACKAGE ? [] : ['test/engine/package.engine.ts']),
    ],
    // Engines share one network, so only one file runs at a time.
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
