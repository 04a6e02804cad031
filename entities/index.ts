/** Every table. */
import { Account } from './account.ts';
import { Address, AddressPool } from './address.ts';
import { Agent } from './agent.ts';
import { AuditEntry } from './audit.ts';
import { CatalogItem, Stock } from './catalog.ts';
import { Chain } from './chain.ts';
import { ChainBlock } from './chain-block.ts';
import { CoinRate } from './coin-rate.ts';
import { CoinSwitch } from './coin-switch.ts';
import { ApiKey, Session } from './credential.ts';
import { Deployment } from './deployment.ts';
import { Deposit } from './deposit.ts';
import { Engine } from './engine.ts';
import { Event } from './event.ts';
import { Brake, Finding } from './finding.ts';
import { Health } from './health.ts';
import { Host, Placement } from './host.ts';
import { IdempotencyKey } from './idempotency.ts';
import { Balance, Transfer } from './ledger.ts';
import { LoginTally } from './login-tally.ts';
import { ManualJob } from './manual-job.ts';
import { OauthClient } from './oauth-client.ts';
import { Payment } from './payment.ts';
import { Place } from './place.ts';
import { Rate } from './rate.ts';
import { ReverseDnsTold } from './reverse-dns.ts';
import { Server } from './server.ts';
import { SshKey } from './ssh-key.ts';
import { Task } from './task.ts';
import { TopUp } from './top-up.ts';
import { PendingLogin, RecoveryCode, Totp } from './totp.ts';
import { Canary, Incident, Peering } from './transparency.ts';
import { Webhook, WebhookDelivery } from './webhook.ts';
import { X402Payment } from './x402-payment.ts';

export const ENTITIES = [
  Account,
  Address,
  AddressPool,
  Agent,
  ApiKey,
  AuditEntry,
  Balance,
  Brake,
  Canary,
  CatalogItem,
  Chain,
  ChainBlock,
  CoinRate,
  CoinSwitch,
  Deployment,
  Deposit,
  Engine,
  Event,
  Finding,
  Health,
  Host,
  IdempotencyKey,
  Incident,
  LoginTally,
  ManualJob,
  OauthClient,
  Peering,
  Payment,
  PendingLogin,
  Place,
  Placement,
  Rate,
  RecoveryCode,
  ReverseDnsTold,
  Server,
  Session,
  SshKey,
  Stock,
  Task,
  TopUp,
  Totp,
  Transfer,
  Webhook,
  WebhookDelivery,
  X402Payment,
];
