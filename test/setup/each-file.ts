/** Vitest loads this module before each test file, so that its hook runs after those of the file. */
import { afterAll } from 'vitest';
import { endFile } from './end.ts';

afterAll(endFile);
