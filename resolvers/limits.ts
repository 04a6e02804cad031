/** How many of each thing an account may have; they are counted under the lock of the account. */
export interface AccountLimits {
  apiKeys: number;
  servers: number;
  sshKeys: number;
  webhooks: number;
  agentEntries: number;
  pendingTopups: number;
  sessions: number;
  oauthClients: number;
}
