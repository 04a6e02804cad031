/**
 * Background work of accounts: expires keys and proposals, keeps the audit log, and writes messages to many accounts. It
 * also deletes old clients, credentials and uses of addresses.
 */
import type { OauthClient } from '../../entities/accounts/oauth-client.ts';
import type { SshKey } from '../../entities/accounts/ssh-key.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import type { Vault } from '../../entities/secrets.ts';
import { startTask } from '../../entities/tasks/start.ts';
import type { WorkerPart } from '../tasks/tasks.ts';
import {
  AUDIT_LINKS_PROCESS,
  AUDIT_SIGNATURE_PROCESS,
  auditLinksProcess,
  auditSignatureProcess,
  signWithNewKey,
} from './audit-links.ts';
import { AUDIT_RETENTION_PROCESS, auditRetentionProcess } from './audit-retention.ts';
import { CREDENTIAL_RETENTION_PROCESS, credentialRetentionProcess } from './credential-retention.ts';
import { OPERATOR_SESSION_PROCESS, operatorSessionProcess } from './end-sessions.ts';
import {
  API_KEY_LANE,
  API_KEY_PROCESS,
  apiKeyProcess,
  type ExpiringKey,
  expiryTask,
  SSH_KEY_PROCESS,
  sshKeyProcess,
  sshKeyTask,
} from './expire-keys.ts';
import { PROPOSAL_EXPIRY_PROCESS, proposalExpiryProcess } from './expire-proposals.ts';
import { HISTORY_RETENTION_PROCESS, historyRetentionProcess } from './history-retention.ts';
import { type Circular, circularTask, MESSAGE_LANE, MESSAGE_PROCESS, messageProcess } from './messages.ts';
import { OAUTH_CLIENT_LANE, OAUTH_CLIENT_PROCESS, oauthClientProcess, removalTask } from './remove-oauth-clients.ts';

export class Accounts implements WorkerPart {
  readonly #db: Database;
  readonly #vault: Vault;
  readonly lanes = { [API_KEY_LANE]: 2, [OAUTH_CLIENT_LANE]: 1, [MESSAGE_LANE]: 1 };
  readonly periodic = [
    AUDIT_LINKS_PROCESS,
    AUDIT_SIGNATURE_PROCESS,
    AUDIT_RETENTION_PROCESS,
    CREDENTIAL_RETENTION_PROCESS,
    HISTORY_RETENTION_PROCESS,
    PROPOSAL_EXPIRY_PROCESS,
    OPERATOR_SESSION_PROCESS,
  ];

  constructor(db: Database, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
  }

  get processes() {
    return {
      [AUDIT_LINKS_PROCESS]: auditLinksProcess(this.#db),
      [AUDIT_SIGNATURE_PROCESS]: auditSignatureProcess(this.#db, this.#vault),
      [AUDIT_RETENTION_PROCESS]: auditRetentionProcess(this.#db),
      [CREDENTIAL_RETENTION_PROCESS]: credentialRetentionProcess(this.#db),
      [HISTORY_RETENTION_PROCESS]: historyRetentionProcess(this.#db),
      [PROPOSAL_EXPIRY_PROCESS]: proposalExpiryProcess(this.#db),
      [OPERATOR_SESSION_PROCESS]: operatorSessionProcess(this.#db),
      [API_KEY_PROCESS]: apiKeyProcess(this.#db),
      [SSH_KEY_PROCESS]: sshKeyProcess(this.#db),
      [OAUTH_CLIENT_PROCESS]: oauthClientProcess(this.#db),
      [MESSAGE_PROCESS]: messageProcess(this.#db),
    };
  }

  /** Wakes the task that signs the audit log if SECRET_KEY is new. */
  signWithNewKey(): Promise<void> {
    return signWithNewKey(this.#db, this.#vault);
  }

  /** Starts the task that records the expiry of an API key. */
  expireApiKey(tx: Transaction, key: ExpiringKey): Promise<void> {
    return startTask(tx, expiryTask(key));
  }

  /** Starts the task that deletes an SSH key at its expiry. */
  expireSshKey(tx: Transaction, key: Pick<SshKey, 'id' | 'accountId'>): Promise<void> {
    return startTask(tx, sshKeyTask(key));
  }

  /** Starts the task that removes an OAuth client after a long time without use. */
  removeUnusedClient(tx: Transaction, client: Pick<OauthClient, 'id' | 'accountId'>): Promise<void> {
    return startTask(tx, removalTask(client));
  }

  /** Lets a worker write a message to many accounts. @param id the subject of its task */
  sendToMany(tx: Transaction, id: string, circular: Circular): Promise<void> {
    return startTask(tx, circularTask(id, circular));
  }
}
