/** All tables. */
import { Account } from '../accounts/account.ts';
import { ApiKey, Session } from '../accounts/credential.ts';
import { LoginCount } from '../accounts/login-attempt.ts';
import { OauthClient } from '../accounts/oauth-client.ts';
import { SshKey } from '../accounts/ssh-key.ts';
import { PendingLogin, RecoveryCode, Totp } from '../accounts/totp.ts';
import { Agent } from '../agents/agent.ts';
import { CatalogItem, Stock } from '../catalog.ts';
import { AuditEntry } from '../history/audit.ts';
import { Event } from '../history/event.ts';
import { IdempotencyKey } from '../idempotency.ts';
import { Chain, ChainBlock, Deposit } from '../payments/chain.ts';
import { CoinRate, CoinSwitch } from '../payments/coin.ts';
import { Balance, Transfer } from '../payments/ledger.ts';
import { Payment } from '../payments/payment.ts';
import { TopUp } from '../payments/top-up.ts';
import { X402Payment } from '../payments/x402-payment.ts';
import { RateLimitCount } from '../rate-limit.ts';
import { Deployment } from '../servers/deployment.ts';
import { Engine } from '../servers/engine.ts';
import { CircuitBreaker, Finding } from '../servers/finding.ts';
import { Host } from '../servers/host.ts';
import { AddressPool, IpAddress } from '../servers/ip-address.ts';
import { ManualJob } from '../servers/manual-job.ts';
import { Place } from '../servers/place.ts';
import { Placement } from '../servers/placement.ts';
import { ReverseDnsTold } from '../servers/reverse-dns.ts';
import { Server } from '../servers/server.ts';
import { Task } from '../tasks/task.ts';
import { Health } from '../transparency/health.ts';
import { Canary, Incident, Peering } from '../transparency/transparency.ts';
import { WebhookDelivery } from '../webhooks/delivery.ts';
import { Webhook } from '../webhooks/webhook.ts';

export const ENTITIES = [
  Account,
  IpAddress,
  AddressPool,
  Agent,
  ApiKey,
  AuditEntry,
  Balance,
  CircuitBreaker,
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
  LoginCount,
  ManualJob,
  OauthClient,
  Peering,
  Payment,
  PendingLogin,
  Place,
  Placement,
  RateLimitCount,
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
