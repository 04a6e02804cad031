/** Migrations in their order. The number ends the name; a migration that has been released is never changed. */
import type { MigrationInterface } from 'typeorm';
import { Initial0000000000001 } from './0001-initial.ts';
import { Catalog0000000000002 } from './0002-catalog.ts';
import { Auth0000000000003 } from './0003-auth.ts';
import { Oauth0000000000004 } from './0004-oauth.ts';
import { Servers0000000000005 } from './0005-servers.ts';
import { Renewals0000000000006 } from './0006-renewals.ts';
import { Webhooks0000000000007 } from './0007-webhooks.ts';
import { Limits0000000000008 } from './0008-limits.ts';
import { Transparency0000000000009 } from './0009-transparency.ts';
import { Agents0000000000010 } from './0010-agents.ts';
import { X4020000000000011 } from './0011-x402.ts';
import { Suspensions0000000000013 } from './0013-suspensions.ts';
import { Health0000000000015 } from './0015-health.ts';
import { Hosts0000000000016 } from './0016-hosts.ts';
import { Placements0000000000017 } from './0017-placements.ts';
import { Dedicated0000000000018 } from './0018-dedicated.ts';
import { Boxes0000000000019 } from './0019-boxes.ts';
import { Payments0000000000021 } from './0021-payments.ts';
import { Chains0000000000022 } from './0022-chains.ts';
import { X402Again0000000000023 } from './0023-x402-again.ts';
import { MissingPayments0000000000024 } from './0024-missing-payments.ts';
import { LostPayments0000000000025 } from './0025-lost-payments.ts';
import { Places0000000000026 } from './0026-places.ts';
import { PendingDeliveries0000000000027 } from './0027-pending-deliveries.ts';

export const MIGRATIONS: (new () => MigrationInterface & { name: string })[] = [
  Initial0000000000001,
  Catalog0000000000002,
  Auth0000000000003,
  Oauth0000000000004,
  Servers0000000000005,
  Renewals0000000000006,
  Webhooks0000000000007,
  Limits0000000000008,
  Transparency0000000000009,
  Agents0000000000010,
  X4020000000000011,
  Suspensions0000000000013,
  Health0000000000015,
  Hosts0000000000016,
  Placements0000000000017,
  Dedicated0000000000018,
  Boxes0000000000019,
  Payments0000000000021,
  Chains0000000000022,
  X402Again0000000000023,
  MissingPayments0000000000024,
  LostPayments0000000000025,
  Places0000000000026,
  PendingDeliveries0000000000027,
];
