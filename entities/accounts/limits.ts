/** The most that an account may have of each thing. An operator may set each for one account. */
export interface AccountLimits {
  apiKeys: number;
  servers: number;
  sshKeys: number;
  webhooks: number;
  agentEntries: number;
  agentChangesPerHour: number;
  pendingTopups: number;
  unpaidTopupsPerDay: number;
  /** Payments by x402 with an open outcome, also of each payer. */
  openPayments: number;
  sessions: number;
  oauthClients: number;
}
