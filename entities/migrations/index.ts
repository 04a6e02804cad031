/** Migrations in their order. The number ends the name; a migration that has been released is never changed. */
import type { MigrationInterface } from 'typeorm';
import { Initial0000000000001 } from './0001-initial.ts';
import { Catalog0000000000002 } from './0002-catalog.ts';
import { Auth0000000000003 } from './0003-auth.ts';
import { Oauth0000000000004 } from './0004-oauth.ts';
import { Transparency0000000000009 } from './0009-transparency.ts';
import { Agents0000000000010 } from './0010-agents.ts';

export const MIGRATIONS: (new () => MigrationInterface & { name: string })[] = [
  Initial0000000000001,
  Catalog0000000000002,
  Auth0000000000003,
  Oauth0000000000004,
  Transparency0000000000009,
  Agents0000000000010,
];
