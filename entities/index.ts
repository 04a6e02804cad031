/** Every table. */
import { Account } from './account.ts';
import { Address } from './address.ts';
import { AuditEntry } from './audit.ts';
import { CatalogItem, Stock } from './catalog.ts';
import { ApiKey, Session } from './credential.ts';
import { Event } from './event.ts';
import { Balance, Transfer } from './ledger.ts';
import { Server } from './server.ts';
import { SshKey } from './ssh-key.ts';
import { Task } from './task.ts';
import { TopUp } from './top-up.ts';
import { Webhook, WebhookDelivery } from './webhook.ts';

export const ENTITIES = [
  Account,
  Address,
  ApiKey,
  AuditEntry,
  Balance,
  CatalogItem,
  Event,
  Server,
  Session,
  SshKey,
  Stock,
  Task,
  TopUp,
  Transfer,
  Webhook,
  WebhookDelivery,
];
