/** Migrations in their order. The number ends the name; a migration that has been released is never changed. */
import type { MigrationInterface } from 'typeorm';
import { Initial0000000000001 } from './0001-initial.ts';
import { Catalog0000000000002 } from './0002-catalog.ts';
import { Limits0000000000008 } from './0008-limits.ts';
import { Transparency0000000000009 } from './0009-transparency.ts';
import { Agents0000000000010 } from './0010-agents.ts';

export const MIGRATIONS: (new () => MigrationInterface & { name: string })[] = [
  Initial0000000000001,
  Catalog0000000000002,
  Limits0000000000008,
  Transparency0000000000009,
  Agents0000000000010,
];
