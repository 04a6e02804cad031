/** The calls that clients make. A REST endpoint and its MCP tool share one name and the same arguments. */

export interface Call {
  /** `METHOD /path` with its parameters; absent: over MCP only. */
  at?: string;
  /** Absent: over REST only. */
  tool?: string;
  /** The call waits for something, so the limit on answers does not apply. */
  waits?: boolean;
}

export const CALLS = {
  register: { at: 'POST /v1/auth/register', tool: 'register_account' },
  login: { at: 'POST /v1/auth/login', tool: 'login' },
  loginTotp: { at: 'POST /v1/auth/login/totp', tool: 'login_totp' },
  refreshTokens: { at: 'POST /v1/auth/token/refresh', tool: 'refresh_token' },
  listSessions: { at: 'GET /v1/auth/sessions' },
  revokeSession: { at: 'DELETE /v1/auth/sessions/{token_id}' },
  setupTotp: { at: 'POST /v1/auth/totp/setup' },
  enableTotp: { at: 'POST /v1/auth/totp/enable' },
  disableTotp: { at: 'POST /v1/auth/totp/disable' },
  changePassword: { at: 'POST /v1/auth/password' },
  createApiKey: { at: 'POST /v1/auth/api-keys', tool: 'create_api_key' },
  listApiKeys: { at: 'GET /v1/auth/api-keys', tool: 'list_api_keys' },
  revokeApiKey: { at: 'DELETE /v1/auth/api-keys/{key_id}', tool: 'revoke_api_key' },
  getAccount: { at: 'GET /v1/account', tool: 'get_account' },
  getBalance: { at: 'GET /v1/account/balance', tool: 'get_balance' },
  getUsage: { at: 'GET /v1/account/usage', tool: 'get_usage' },
  getAuditLog: { at: 'GET /v1/account/audit-log', tool: 'get_audit_log' },
  listCoins: { at: 'GET /v1/billing/coins', tool: 'list_coins' },
  createTopup: { at: 'POST /v1/billing/topups', tool: 'create_topup' },
  listTopups: { at: 'GET /v1/billing/topups', tool: 'list_topups' },
  getTopup: { at: 'GET /v1/billing/topups/{order_number}', tool: 'get_topup' },
  cancelTopup: { at: 'POST /v1/billing/topups/{order_number}/cancel', tool: 'cancel_topup' },
  getCatalog: { at: 'GET /v1/catalog', tool: 'list_catalog' },
  getStatus: { at: 'GET /v1/transparency/status', tool: 'get_status' },
  orderServer: { at: 'POST /v1/servers', tool: 'order_server' },
  listServers: { at: 'GET /v1/servers', tool: 'list_servers' },
  getServer: { at: 'GET /v1/servers/{order_number}', tool: 'get_server' },
  waitForServer: { at: 'GET /v1/servers/{order_number}', tool: 'get_server', waits: true },
  followServer: { tool: 'wait_for_server', waits: true },
  updateServer: { at: 'PATCH /v1/servers/{order_number}', tool: 'update_server' },
  deleteServer: { at: 'DELETE /v1/servers/{order_number}', tool: 'cancel_server' },
  addSshKey: { at: 'POST /v1/ssh-keys', tool: 'add_ssh_key' },
  listSshKeys: { at: 'GET /v1/ssh-keys', tool: 'list_ssh_keys' },
  getSshKey: { at: 'GET /v1/ssh-keys/{id}', tool: 'get_ssh_key' },
  deleteSshKey: { at: 'DELETE /v1/ssh-keys/{id}', tool: 'remove_ssh_key' },
  createWebhook: { at: 'POST /v1/webhooks', tool: 'create_webhook' },
  listWebhooks: { at: 'GET /v1/webhooks', tool: 'list_webhooks' },
  deleteWebhook: { at: 'DELETE /v1/webhooks/{id}', tool: 'delete_webhook' },
  testWebhook: { at: 'POST /v1/webhooks/{id}/test', tool: 'test_webhook', waits: true },
  searchAgents: { at: 'GET /v1/agents/directory', tool: 'search_agents' },
  publishAgent: { at: 'POST /v1/agents/directory', tool: 'publish_agent' },
  registerOauthClient: { at: 'POST /v1/oauth/register' },
  issueOauthToken: { at: 'POST /v1/oauth/token' },
  revokeOauthToken: { at: 'POST /v1/oauth/revoke' },
  introspectOauthToken: { at: 'POST /v1/oauth/introspect' },
} as const satisfies Record<string, Call>;

export type CallName = keyof typeof CALLS;
export const callOf = (name: CallName): Call => CALLS[name];
