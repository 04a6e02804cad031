/** Migrations in their order. The number ends the name; a migration that has been released is never changed. */
import type { MigrationInterface } from 'typeorm';
import { Initial0000000000001 } from './0001-initial.ts';
import { Catalog0000000000002 } from './0002-catalog.ts';
import { Webhooks0000000000007 } from './0007-webhooks.ts';

export const MIGRATIONS: (new () => MigrationInterface & { name: string })[] = [
  Initial0000000000001,
  Catalog0000000000002,
  Webhooks0000000000007,
];
